# Writes the files in the directories xgboost and lightgbm; recorded with XGBoost 3.2.0 and
# LightGBM 4.7.0.
import os

import lightgbm
import numpy as np
import xgboost

for directory in ("xgboost", "lightgbm"):
    os.makedirs(directory, exist_ok=True)
x = np.random.default_rng(0).random((100, 4))
y = x.sum(1)
model = xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(x, y), 2)
model.set_attr(note='"version":[3,2,0]}')  # no end
for name in ("model.ubj", "model.json"):
    model.save_model("xgboost/" + name)
model = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(x, y), 2)
model.save_model("xgboost/linear.ubj")
model = lightgbm.train({"num_leaves": 4, "verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 2)
model.save_model("lightgbm/model.txt")
