package main

// usual is what is run with each version of Hadoop: parameter servers and ranks with
// checkpoints, losses of each kind of process, Kerberos, and the driver.
var usual = []tests{
	{"test/e2e", []string{"TestTrainerLosesAParameterServer", "TestTheMasterIsLost", "TestLongTheClusterChangesUnderAJob", "TestSecure", "TestTensorFlow", "TestTheWorkingDirectoryIsTheCheckpointDirectory"}},
	{"am/yarn", []string{".*"}},
}

// allSlices are all long tests, each in one, so that a slice takes at most some twenty
// minutes on two cores. Those with a version of Hadoop run tests once more, with
// that one.
var allSlices = []slice{
	{name: "tensorflow", tests: []tests{
		{"test/e2e", []string{"TestLongTensorFlow", "TestLongPrivateDirectories", "TestLongPrivateDirectoriesForgetTheCheckpoint"}},
	}},
	{name: "programs-torch", families: []string{"torch"}, tests: []tests{
		{"test/programs", []string{"TestLongTorchPrograms"}},
		{"test/e2e", []string{"TestLongTorchrunRestartsItsProcesses", "TestLongElasticRanksLoseANode"}},
	}},
	{name: "programs-tensorflow", families: []string{"tensorflow", "jax", "boosting"}, tests: []tests{
		{"test/programs", []string{"TestLongTensorFlowPrograms", "TestLongJAXPrograms", "TestLongBoostingPrograms"}},
	}},
	{name: "programs-versions", families: []string{"tensorflow-versions", "ray", "torchft"}, tests: []tests{
		{"test/programs", []string{"TestLongTensorFlowVersions", "TestLongRayPrograms", "TestLongTorchFTPrograms"}},
		{"runtime", []string{"TestLongAWorkersSessionOfOlderTensorFlows"}},
	}},
	{name: "programs-horovod", families: []string{"horovod", "mxnet"}, tests: []tests{
		{"test/programs", []string{"TestLongHorovodPrograms", "TestLongMXNetPrograms"}},
	}},
	{name: "faults-tasks", tests: []tests{
		{"test/faults", []string{"TestLongTasksAreLost", "TestLongMastersAreLost"}},
	}},
	{name: "faults-daemons", tests: []tests{
		{"test/faults", []string{"TestLongDaemonsAreLost"}},
		{"test/faults", []string{"TestLongNodesAreLost"}},
	}},
	{name: "faults-scenarios", tests: []tests{
		{"test/faults", []string{"TestLongScenarios"}},
	}},
	{name: "faults-pairs", tests: []tests{
		{"test/faults", []string{"TestLongPairsAreLost"}},
	}},
	{name: "security", tests: []tests{
		{"test/e2e", []string{"TestLongOutlivingTokens", "TestLongProtections", "TestLongQueueMappingsAndACLs"}},
	}},
	{name: "security-tensorflow", tests: []tests{
		{"test/e2e", []string{"TestLongTensorFlowAtProtections"}},
	}},
	{name: "yarn", tests: []tests{
		{"test/e2e", []string{"TestLongASlowRankIsMoved", "TestLongElasticParameterServers", "TestLongElasticRanksWaitBelowTheMinimum", "TestLongFairScheduler", "TestLongNodesFallSickAndLeave", "TestLongPackedAndApartByTheFairScheduler", "TestLongQueueMappings", "TestLongLimitsOfOtherResources", "TestLongRanksSaveTogether"}},
		{"test/mutation", []string{"TestLongTheSimulatorFindsMutations"}},
	}},
	{name: "elastic", tests: []tests{
		{"test/e2e", []string{"TestLongElasticRanksLoseTheMaster", "TestLongElasticRanksLoseANodeWhileFewWork"}},
		{"am/core", []string{"TestLongSimulation"}},
	}},
	{name: "rules-bytes", tests: []tests{
		{"test/mutation", []string{"TestLongEachRuleOfBytesHasATestThatFailsWithoutIt"}},
	}},
	{name: "rules-storage", tests: []tests{
		{"test/mutation", []string{"TestLongEachStorageRuleHasATestThatFailsWithoutIt"}},
	}},
	{name: "rules-recovery", tests: []tests{
		{"test/mutation", []string{"TestLongEachRecoveryRuleHasATestThatFailsWithoutIt"}},
	}},
	{name: "rules-hdfs", tests: []tests{
		{"test/mutation", []string{"TestLongEachRuleOfHDFSHasATestThatFailsWithoutIt"}},
	}},
	{name: "schedulers", tests: []tests{
		{"test/e2e", []string{"TestLongSchedulers"}},
	}},
	{name: "hadoop-3.1", hadoop: "3.1.4", tests: usual},
	{name: "hadoop-3.2", hadoop: "3.2.4", tests: usual},
	{name: "hadoop-3.3", hadoop: "3.3.6", tests: usual},
	{name: "hadoop-3.5", hadoop: "3.5.0", tests: usual},
	{name: "schedulers-3.5", hadoop: "3.5.0", tests: []tests{
		{"test/e2e", []string{"TestLongSchedulers"}},
	}},
	{name: "hdfs", tests: []tests{
		{"hdfsckpt/mount", []string{"TestLongStalledNameNode"}},
		{"internal/hadoop/hdfs/write", []string{"TestLongADataNodeIsLost"}},
		{"hdfsckpt", []string{"TestLongRollbackIsBrokenOffAnywhere", "TestLongRollbackIsBrokenOffOnHDFS"}},
		{"internal/hadoop/hdfs/topologytest", []string{"TestLongDataNodesByName"}},
	}},
	{name: "scale", tests: []tests{
		{"test/scale", []string{"TestLongManyTasks"}},
	}},
	{name: "libraries", tests: []tests{
		{"hdfsckpt", []string{"TestLongRealOrbax", "TestLongRealKeras"}},
		{"runtime", []string{"TestLongRayFindsItsCluster", "TestLongXGBoostInitializesByItself", "TestLongMXNetFindsItsServers"}},
	}},
	{name: "jobs", tests: []tests{
		{"test/e2e", []string{"TestLongTheClusterChangesUnderAJob", "TestLongElasticRanks", "TestLongTheLinkAfterTheEnd", "TestLongASpareWithAWarmInterpreter", "TestLongASpareWithAWarmTorch", "TestLongEncryptionZone"}},
		{"test/browser", []string{"TestLongAJobOnYARNAndAfterItsEnd"}},
	}},
	{name: "rules-cluster", tests: []tests{
		{"test/mutation", []string{"TestLongEachRuleOfTheClusterHasATestThatFailsWithoutIt"}},
	}},
	{name: "clusters", tests: []tests{
		{"test/e2e", []string{"TestLongAJobInAnImage", "TestLongARuntimeThatIsNotAllowed", "TestLongPackedAndApart", "TestLongTheNodesProxy", "TestLongAnImageThatNobodyKnows", "TestLongNodeLabels", "TestLongNodeLabelsAreChecked", "TestLongSpread", "TestLongOtherResources", "TestLongVirtualMemoryIsLimited"}},
	}},
}
