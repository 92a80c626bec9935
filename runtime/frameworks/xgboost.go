package frameworks

import (
	"fmt"
	"strconv"

	"holdfast/runtime/framework"
)

// xgboost is XGBoost with several processes, by xgboost.collective. A rank that comes back
// alone cannot join the others, so all begin again together.
var xgboost = framework.Framework{
	Name: "xgboost", Title: "XGBoost",
	Modules:       []string{"xgboost", "xgboost-cpu"},
	Imports:       []string{"xgboost"},
	Precedence:    framework.Yields,
	Observers:     observers,
	Rules:         allTogether,
	Defaults:      python,
	Env:           xgboostEnv,
	ProcessPerGPU: true, // a process computes on one only
	Failures: framework.Failures{
		Any: []string{"XGBoostError"},
		Phrases: []string{
			`(?:Ring )?Allreduce failed`, `Encountered EOF`, `The other end is likely closed`, `Poll error condition`, `Socket error\.`, `Failed to connect to the tracker`,
		},
	},
}

// xgboostEnv returns what DMLC's launchers give to the workers that they start. XGBoost
// takes it as arguments of xgboost.collective.init, which runtime/python/_holdfast/xgboost.py
// fills in; there the first rank starts the tracker, on its task's port. The tracker tells
// the ranks the addresses by which it was called, so those beside it call it by the
// address that others reach.
//
// Ranks are in the order of DMLC_TASK_ID as text.
func xgboostEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	first, world := m.Members[0], strconv.Itoa(m.World())
	tracker := m.Address(first.Host)
	if m.Node == 0 && m.Host != "" {
		tracker = m.Host
	}
	return map[string]string{
		"DMLC_TRACKER_URI":  tracker,
		"DMLC_TRACKER_PORT": strconv.Itoa(first.Port),
		"DMLC_TASK_ID":      fmt.Sprintf("%0*d", len(strconv.Itoa(m.World()-1)), m.Rank),
		"DMLC_NUM_WORKER":   world,
		"DMLC_NUM_SERVER":   "0",
		"DMLC_ROLE":         "worker",
		"DMLC_NUM_ATTEMPT":  strconv.Itoa(m.Number),
	}
}
