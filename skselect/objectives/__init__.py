"""What a threshold should achieve: how each objective finds it, bounds it and says it.

An objective stores what it gets and checks it when it is used, as scikit-learn's estimators do, so
that searches can set its parameters. :meth:`Objective.on` sets a copy on given rows.
"""

from skselect.objectives.choice import (
    Best as Best,
)
from skselect.objectives.choice import (
    Cost as Cost,
)
from skselect.objectives.counts import (
    DOUBT as DOUBT,
)
from skselect.objectives.counts import (
    FIXED_METHOD as FIXED_METHOD,
)
from skselect.objectives.counts import (
    FOUND as FOUND,
)
from skselect.objectives.counts import (
    Counts as Counts,
)
from skselect.objectives.counts import (
    Finding as Finding,
)
from skselect.objectives.counts import (
    find_mean as find_mean,
)
from skselect.objectives.coverage import (
    Coverage as Coverage,
)
from skselect.objectives.guarantee import (
    Guarantee as Guarantee,
)
from skselect.objectives.loss import (
    Loss as Loss,
)
from skselect.objectives.objective import (
    MEAN_ONLY as MEAN_ONLY,
)
from skselect.objectives.objective import (
    Found as Found,
)
from skselect.objectives.objective import (
    Method as Method,
)
from skselect.objectives.objective import (
    Objective as Objective,
)
from skselect.objectives.objective import (
    Objectives as Objectives,
)
from skselect.objectives.reading import (
    GUARANTEES as GUARANTEES,
)
from skselect.objectives.reading import (
    WORDS as WORDS,
)
from skselect.objectives.reading import (
    check_objective as check_objective,
)
from skselect.objectives.reading import (
    each_of as each_of,
)
from skselect.objectives.reading import (
    first_of as first_of,
)
from skselect.objectives.reading import (
    for_all_rows as for_all_rows,
)
from skselect.objectives.reading import (
    name_options as name_options,
)
from skselect.objectives.reading import (
    read_guarantee as read_guarantee,
)
from skselect.objectives.reading import (
    read_objective as read_objective,
)
from skselect.objectives.reading import (
    refuse_given as refuse_given,
)
from skselect.objectives.refusal import MOST_HELD_OUT as MOST_HELD_OUT
from skselect.objectives.risk import (
    HELD_OUT as HELD_OUT,
)
from skselect.objectives.risk import (
    GeneralizedRisk as GeneralizedRisk,
)
from skselect.objectives.risk import (
    Risk as Risk,
)
from skselect.objectives.system_risk import (
    NAMING as NAMING,
)
from skselect.objectives.system_risk import (
    SystemRisk as SystemRisk,
)
