package mutation

import "testing"

func TestLongEachStorageRuleHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t, storageRules)
}

// storageRules: the user's directory is the user's, and no byte is wrong.
var storageRules = []rule{
	{
		promise: "a file called checkpoint that is the user's own is left alone",
		file:    "hdfsckpt/repair_pointers.go",
		old:     "case !known || before.Foreign ||",
		new:     "case before.Foreign && false ||",
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint",
	},
}
