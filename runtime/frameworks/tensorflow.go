package frameworks

import (
	"encoding/json"
	"fmt"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// tensorflow is TensorFlow 1 and 2 with parameter servers, or without.
var tensorflow = framework.Framework{
	Name: "tensorflow", Title: "TensorFlow",
	Modules: []string{"tensorflow", "tensorflow-cpu"},
	Implied: func(spec *proto.JobSpec) bool { return spec.Tf1 || framework.HasRole(spec, "ps") },
	Options: []framework.Option{{
		Flag: "--tf1", For: "scripts of TensorFlow 1",
		Given: func(spec *proto.JobSpec) bool { return spec.Tf1 },
	}},
	Imports:   []string{"tensorflow"},
	Observers: observers,
	Rules:     tensorflowRules,
	// The runtime of MultiWorkerMirroredStrategy's ranks has a preemption notifier, as
	// JAX's has (tensorflow/core/distributed_runtime/preemption).
	SavesTogether: func(*proto.JobSpec) bool { return true },
	Check:         checkTensorFlow,
	Defaults:      python,
	Env:           tensorflowEnv,
	TensorBoard:   showsTensorBoard,
	Shim:          tensorflowShim,
	Elastic:       true, // without parameter servers; workers with them come and go one by one
	Warm:          "tensorflow",
	Failures: framework.Failures{
		// _RecoverableSession (monitored_session.py) takes the first two as a lost
		// peer; a cancelled step is what the others of a broken session see.
		Lost: []string{"AbortedError", "UnavailableError", "CancelledError"},
		Any: []string{
			"InternalError", "UnknownError", "DeadlineExceededError", "FailedPreconditionError", "NotFoundError", "InvalidArgumentError",
		},
		Phrases: []string{
			`socket closed`, `failed to connect to all addresses`, `endpoint read failed`, `recvmsg:`,
			`unexpectedly? (?:restarted|closed)`, `possibly this worker just restarted`, `worker .* just restarted`,
			`session handle is not found`, `\bUNAVAILABLE: `, `session was not ready after waiting`,
		},
	},
	Advice: []framework.Advice{
		{
			Says: `module '?tensorflow(?:\.compat\.v2)?'? has no attribute '(?:placeholder|Session|InteractiveSession|app|ConfigProto|GPUOptions|global_variables_initializer|initialize_all_variables|get_variable|variable_scope|set_random_seed|train\.(?:Server|Supervisor)|logging|flags|gfile|contrib|reset_default_graph|log|to_int64|to_float|random_uniform|random_normal|truncated_normal|layers|summary|trainable_variables|get_default_graph|python_io|Print)'|module '?tensorflow(?:\._api\.v2\.train|\.train|\._api\.v2\.compat\.v2\.train|\.keras\.train|\.[\w.]*)'? has no attribute '(?:Server|Supervisor|MonitoredTrainingSession|Saver|GradientDescentOptimizer|AdagradOptimizer|AdamOptimizer|FtrlOptimizer|replica_device_setter|StopAtStepHook|get_or_create_global_step|SummarySaverHook|import_meta_graph|merge_all)'`,
			Do:   "The script is written for TensorFlow 1 and this is TensorFlow 2: run it with --tf1.",
		},
		{
			Says: `(?i)placeholder\(\) is not compatible with eager execution|loss. passed to Optimizer\.compute_gradients should be a function when eager`,
			Do:   "The script is written for TensorFlow 1 and runs with the behaviour of TensorFlow 2: run it with --tf1.",
		},
		{
			Says: `No module named '?tensorflow\.contrib|tf\.contrib\.[\w.]+ is not in TensorFlow 2`,
			Do:   "tf.contrib ended with TensorFlow 1; the script needs TensorFlow 1 itself, in an environment shipped with --archives, or an edit.",
		},
		{
			Says: `(?i:not ?found)[^\n]*_temp(?:_[0-9a-f]+)?/part-\d+-of-\d+|_temp(?:_[0-9a-f]+)?(?:/part-\S*)?; No such file or directory|allow_missing_files was set to false and \S*_temp`,
			Do:   "A task did not find the parts of the checkpoint that others wrote. Name the directory that the script writes, as it spells it, with --checkpoint PATH=URI, so that all tasks share it; if it is named, something else removed files in it.",
		},
		{
			Says: `(?s)Failed to get matching files on \S+|Unsuccessful TensorSliceReader constructor`,
			Do:   "A task cannot read the checkpoint that another one wrote. Name the checkpoint directory, as the script spells it, with --checkpoint PATH=URI, so that all tasks share it; if it is named, see yarn-submit ckpt ls URI for what is complete.",
		},
		{Says: `(?i)RESOURCE_EXHAUSTED: .*(?:GPU|OOM when allocating)|OOM when allocating tensor`, Do: framework.UseLessDeviceMemory},
	},
}

// tensorflowRules: with parameter servers, TensorFlow's tasks are lost and come back
// one by one. Parameter servers keep their peers' sessions recoverable, and a worker
// that dies of a peer's loss is restarted for that cause. Without them, workers are
// ranks of one group (tf.distribute.MultiWorkerMirroredStrategy), which all die of the
// loss of one.
//
// With TensorFlow 2, the chief of a job with parameter servers is a coordinator, and
// its workers are servers, which do not end by themselves
// (tf.distribute.ParameterServerStrategy). Workers of other scripts may end.
func tensorflowRules(spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	loss, completion := proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	if (role == "worker" || role == "chief") && !framework.HasRole(spec, "ps") && framework.RoleCount(spec, "worker")+framework.RoleCount(spec, "chief") > 1 {
		loss = proto.LossRule_LOSS_RULE_ALL
	}
	switch {
	case role == "ps":
		completion = proto.CompletionRule_COMPLETION_RULE_SERVICE
	case role == "worker" && !spec.Tf1 && framework.HasRole(spec, "chief") && framework.HasRole(spec, "ps"):
		completion = proto.CompletionRule_COMPLETION_RULE_EITHER
	}
	return loss, completion
}

// checkTensorFlow: TF_CONFIG knows one chief and one evaluator (tf.distribute,
// "Setting up TF_CONFIG"), and its tasks are servers, each with an address.
func checkTensorFlow(spec *proto.JobSpec) error {
	for _, single := range []string{"chief", "evaluator"} {
		if r := framework.FindRole(spec, single); r != nil && r.Count > 1 {
			return fmt.Errorf("TensorFlow knows one %s only, and the job has %d; the others are workers: use --%s 1 --worker N", single, r.Count, single)
		}
	}
	for _, r := range spec.Roles {
		if _, observer := observers[r.Name]; !observer && r.Processes > 1 {
			return fmt.Errorf("TensorFlow knows each process by an address of its own, and the %d processes of a %s would share one; use more tasks instead, as in --%s %d", r.Processes, r.Name, r.Name, r.Count*r.Processes)
		}
	}
	return nil
}

// tensorflowEnv returns TF_CONFIG, as tf.distribute.cluster_resolver.
// TFConfigClusterResolver reads it, and the same in the variables of TonY
// (TFRuntime.java, TaskExecutor.java, ApplicationMaster.java in tony-core) and of
// XLearning (HboxContainer.java). An evaluator is told who it is, and is no member of
// the cluster.
func tensorflowEnv(m framework.Member) map[string]string {
	type task struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	config := struct {
		Cluster map[string][]string `json:"cluster"`
		Task    task                `json:"task"`
	}{m.Cluster(), task{m.Task.Role, m.RoleIndex()}}
	b, err := json.Marshal(config)
	if err != nil {
		panic(err) // strings and integers
	}
	cluster := m.ClusterJSON()
	env := tonyEnv(m)
	env["TF_CONFIG"], env["TF_ROLE"], env["TF_INDEX"] = string(b), m.Task.Role, strconv.Itoa(m.RoleIndex())
	for _, name := range []string{"CLUSTER_SPEC", "TF_CLUSTER_DEF"} {
		if framework.Fits(name, cluster) { // else the job may have a TF_CONFIG of its own
			env[name] = cluster
		}
	}
	if m.TensorBoardPort != 0 {
		env["TB_PORT"] = strconv.Itoa(m.TensorBoardPort)
	}
	return env
}

// showsTensorBoard: the chief has TensorBoard in TonY, or the first worker where there
// is no chief (TonySession.isChief, MLGenericRuntime.needReserveTBPort).
func showsTensorBoard(spec *proto.JobSpec, t framework.Task) bool {
	return t.Index == 0 && (t.Role == "chief" || t.Role == "worker" && !framework.HasRole(spec, "chief"))
}

// tensorflowShim returns the settings that runtime/python/_holdfast/tensorflow.py documents.
func tensorflowShim(spec *proto.JobSpec) map[string]string {
	env := map[string]string{
		"HOLDFAST_NAME_LOST_PEERS":  "1",
		"HOLDFAST_FAIL_FAST":        "1",
		"HOLDFAST_COORDINATOR_EXIT": "1",
		"HOLDFAST_DEVICE_FILTERS":   "1",
		proto.EnvLinger:             "1",
	}
	if !spec.KeepInterpreterWaits {
		env["HOLDFAST_RECOVERY_WAIT_SECS"] = "1"
	}
	if spec.Tf1 {
		env["HOLDFAST_TF1"] = "1"
	}
	return env
}
