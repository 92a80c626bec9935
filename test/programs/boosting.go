package programs

import "holdfast/test/pyenv"

var boostingPrograms = []Program{
	boosting(ranks("xgboost", "xgboost/train_xgboost.py", "xgboost", "worker-0", []string{"xgboost-cpu"},
		append([]string{"python", "train_xgboost.py"}, inSteps...)...)),
	boosting(ranks("lightgbm", "lightgbm/train_lightgbm.py", "lightgbm", "worker-1", []string{"lightgbm"},
		append([]string{"python", "train_lightgbm.py", "--rank", "{rank}"}, inSteps...)...)),
}

func boosting(p Program) Program {
	p.Python = pyenv.Boosting
	return p
}
