package programs

import (
	"context"
	"path"

	"holdfast/test/pyenv"
)

// tensorflowPrograms are the examples, each with the newest TensorFlow, and the one with
// MonitoredTrainingSession also with older ones.
var tensorflowPrograms = []Program{
	servers("monitored-session", "monitored-session/monitored_session.py", pyenv.TensorFlow, "--tf1"),
	servers("supervisor", "supervisor/supervisor.py", pyenv.TensorFlow, "--tf1"),
	servers("supervisor-sharded", "supervisor-sharded/supervisor_sharded.py", pyenv.TensorFlow, "--tf1"),
	{
		Name: "parameter-server-strategy", Packages: []string{"tensorflow-cpu", "keras"}, Python: pyenv.TensorFlow,
		Files:   []string{"parameter-server-strategy/parameter_server_strategy.py"},
		Flags:   append([]string{"--framework", "tensorflow", "--chief", "1", "--chief-memory", "900m"}, serving...),
		Command: []string{"python", "parameter_server_strategy.py", "--steps", "1200"},
		Path:    "./train_logs", Format: "tensorflow", Step: step, Victim: "ps-1",
	},
	{
		Name: "keras-multiworker", Packages: []string{"tensorflow-cpu", "tf-keras"}, Python: tfKeras.Make,
		Files:   []string{"keras-multiworker/train_keras.py"},
		Flags:   append([]string{"--framework", "tensorflow"}, twoRanks...),
		Command: append([]string{"python", "train_keras.py"}, inSteps...),
		Path:    "./train_logs", Format: "tensorflow", Step: step, OwnNumbers: true, Victim: "worker-1",
	},
}

var tensorflowVersions = []Program{
	servers("monitored-session-2.15", "monitored-session/monitored_session.py", tf215.Make, "--tf1"),
	servers("monitored-session-2.11", "monitored-session/monitored_session.py", tf211.Make, "--tf1"),
	servers("monitored-session-2.3", "monitored-session/monitored_session.py", pyenv.TensorFlow23.Make, "--tf1"),
	servers("monitored-session-1.15", "monitored-session/monitored_session.py", pyenv.TensorFlow115.Make),
}

// serving are two parameter servers and two workers.
var serving = []string{"--ps", "2", "--worker", "2", "--ps-memory", "900m", "--worker-memory", "900m"}

// servers is a program of TensorFlow 1 that is told its addresses on the command line.
func servers(name, script string, python func(context.Context) (string, error), flags ...string) Program {
	return Program{
		Name: name, Packages: []string{"tensorflow-cpu"}, Python: python, Files: []string{script},
		Flags: append(append([]string{"--framework", "tensorflow"}, serving...), flags...),
		Command: []string{"python", path.Base(script), "--job_name={role}", "--task_index={index}",
			"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--steps", "900"},
		Path: "./train_logs", Format: "tensorflow", Step: step, Victim: "ps-1",
	}
}
