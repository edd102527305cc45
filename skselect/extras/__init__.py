"""What few need: cascades of classifiers, and confidences that are learnt.

The other rooms know what they ask of such a part (`policy.stages`, `estimators.interfaces`) and
not the part itself.
"""
