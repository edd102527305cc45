"""
Draw a ROC curve that counts confidence
=======================================

The weight of each row is the confidence in its predicted class. Where the curve lies above the
plain one (dashed), the classifier is surer of the rows that it ranks well.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect.display import ConfidenceWeightedRocDisplay
from skselect.metrics import cw_accuracy_score, cw_auc_score

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "mean smoothness", "mean symmetry"]]
models = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    "naive Bayes": GaussianNB(),
}
y_probas = {
    name: cross_val_predict(model, X, y, method="predict_proba") for name, model in models.items()
}

# %%
for name, proba in y_probas.items():
    accuracy = (proba.argmax(axis=1) == y).mean()
    areas = roc_auc_score(y, proba[:, 1]), cw_auc_score(y, proba)
    print(
        f"{name:12} AUC {areas[0]:.3f}, weighted {areas[1]:.3f}; "
        f"accuracy {accuracy:.3f}, weighted {cw_accuracy_score(y, proba):.3f}"
    )
ConfidenceWeightedRocDisplay.from_models(y, y_probas)
plt.show()
