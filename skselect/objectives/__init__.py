"""What a threshold should achieve: how each objective finds it, bounds it and says it.

An objective stores what it gets and checks it when it is used, as scikit-learn's estimators do, so
that searches can set its parameters. :meth:`Objective.on` sets a copy on given rows.
"""

from skselect.objectives.choice import (
    Best as Best,
    Cost as Cost,
)
from skselect.objectives.counts import (
    DOUBT as DOUBT,
    FIXED_METHOD as FIXED_METHOD,
    FOUND as FOUND,
    Counts as Counts,
    Finding as Finding,
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
    Found as Found,
    Method as Method,
    Objective as Objective,
    Objectives as Objectives,
)
from skselect.objectives.reading import (
    GUARANTEES as GUARANTEES,
    WORDS as WORDS,
    check_objective as check_objective,
    each_of as each_of,
    first_of as first_of,
    for_all_rows as for_all_rows,
    name_options as name_options,
    read_guarantee as read_guarantee,
    read_objective as read_objective,
    refuse_given as refuse_given,
)
from skselect.objectives.refusal import MOST_HELD_OUT as MOST_HELD_OUT
from skselect.objectives.risk import (
    HELD_OUT as HELD_OUT,
    GeneralizedRisk as GeneralizedRisk,
    Risk as Risk,
)
from skselect.objectives.system_risk import (
    NAMING as NAMING,
    SystemRisk as SystemRisk,
)
