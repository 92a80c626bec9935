package runtime_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
)

// TestHowManyProcesses: a script of PyTorch runs once for each GPU, and a launcher starts
// as many itself.
func TestHowManyProcesses(t *testing.T) {
	for _, c := range []struct {
		framework, command string
		gpus, asked        int32
		started            int
		launched           string // PET_NPROC_PER_NODE
	}{
		{"pytorch", "python train.py", 0, 0, 1, "1"},
		{"pytorch", "python train.py", 4, 0, 4, "4"},
		{"pytorch", "/opt/venv/bin/python3.11 -u -m train", 4, 0, 4, "4"},
		{"pytorch", "python3.14t train.py", 4, 0, 4, "4"},
		{"pytorch", "python3-config --libs", 4, 0, 1, "4"},
		{"pytorch", "./train.py", 2, 0, 2, "2"},
		{"pytorch", "python train.py", 4, 1, 1, "1"},
		{"pytorch", "python train.py", 0, 2, 2, "2"},
		{"pytorch", "torchrun train.py", 4, 0, 1, "4"},
		{"pytorch", "torchrun train.py", 0, 2, 1, "2"},
		{"pytorch", "python -m torch.distributed.run train.py", 4, 8, 1, "8"},
		{"pytorch", "python -W ignore -um torch.distributed.run train.py", 4, 0, 1, "4"},
		{"torchft", "torchrun train.py", 4, 0, 1, "4"},
		{"torchft", "torchrun train.py", 0, 2, 1, "2"},
		{"torchft", "python -m torch.distributed.run train.py", 4, 0, 1, "4"},
		{"torchft", "python train.py", 4, 0, 4, "4"},
		{"pytorch", "./train.sh", 4, 0, 1, "4"},
		{"pytorch", "./train.sh", 4, 4, 4, "4"},
		{"horovod", "./train.sh", 4, 0, 1, ""},
		{"horovod", "python train.py", 4, 0, 4, ""},
		{"jax", "python train.py", 4, 0, 1, ""},
		{"jax", "python train.py", 4, 2, 2, ""},
		{"tensorflow", "python train.py", 4, 0, 1, ""},
		{"none", "./serve", 4, 0, 1, ""},
		{"none", "./serve", 0, 3, 3, ""},
	} {
		s := spec(c.framework, "worker", 2)
		s.Command, s.Roles[0].Gpus, s.Roles[0].Processes = strings.Fields(c.command), c.gpus, c.asked
		_, env := command(t, s, "worker-1")
		if got := runtime.Processes(s, "worker"); got != c.started || env["PET_NPROC_PER_NODE"] != c.launched {
			t.Errorf("%s: %q with %d GPUs, %d asked for: %d are started and %s by a launcher; want %d and %s",
				c.framework, c.command, c.gpus, c.asked, got, env["PET_NPROC_PER_NODE"], c.started, c.launched)
		}
		// Ranks are those of all tasks, whoever starts them.
		launched, _ := strconv.Atoi(c.launched)
		if most := strconv.Itoa(2 * max(c.started, launched)); c.framework != "torchft" && env["HOLDFAST_WORLD_MAX"] != most {
			t.Errorf("%s: %q with %d GPUs, %d asked for: there are %s ranks at most, want %s", c.framework, c.command, c.gpus, c.asked, env["HOLDFAST_WORLD_MAX"], most)
		}
	}
	s := spec("pytorch", "evaluator", 1, "worker", 1)
	s.Command, s.Roles[0].Gpus = []string{"python", "x.py"}, 2
	if err := runtime.Complete(s); err != nil || runtime.Processes(s, "evaluator") != 1 {
		t.Errorf("an observer, which has no rank, runs as %d processes, %v", runtime.Processes(s, "evaluator"), err)
	}
}

// TestTensorFlowHasOneProcessATask: two could not both listen at the task's address.
func TestTensorFlowHasOneProcessATask(t *testing.T) {
	s := spec("tensorflow", "worker", 3)
	s.Roles[0].Processes = 2
	if err := runtime.Complete(s); err == nil || !strings.Contains(err.Error(), "--worker 6") {
		t.Errorf("two processes with one address: %v", err)
	}
}

// TestRanksOfSeveralProcesses: ranks count through the processes of all tasks, however many
// each has.
func TestRanksOfSeveralProcesses(t *testing.T) {
	s := spec("pytorch", "boss", 1, "worker", 2)
	s.Roles[1].Processes = 2
	s.Command = []string{"train", "--rank={rank}/{world_size}", "--local={local_rank}/{local_world_size}", "--node={node_rank}"}
	for _, c := range []struct {
		task  int
		local int
		words string
	}{
		{0, 0, "train --rank=0/5 --local=0/1 --node=0"},
		{1, 0, "train --rank=1/5 --local=0/2 --node=1"},
		{1, 1, "train --rank=2/5 --local=1/2 --node=1"},
		{2, 1, "train --rank=4/5 --local=1/2 --node=2"},
	} {
		if err := runtime.Complete(s); err != nil {
			t.Fatal(err)
		}
		a := attempt(s, runtime.Tasks(s)[c.task])
		a.Local = c.local
		argv, env, err := runtime.Command(s, a)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(argv, " "); got != c.words {
			t.Errorf("the command is %q, want %q", got, c.words)
		}
		said := "train --rank=" + env["RANK"] + "/" + env["WORLD_SIZE"] + " --local=" + env["LOCAL_RANK"] + "/" + env["LOCAL_WORLD_SIZE"] + " --node=" + env["NODE_RANK"]
		if said != c.words || env["GROUP_RANK"] != env["NODE_RANK"] || env["GROUP_WORLD_SIZE"] != "3" || env["HOLDFAST_LOCAL_RANK"] != env["LOCAL_RANK"] {
			t.Errorf("the environment says %q and %v, want %q", said, env, c.words)
		}
		if several := c.task > 0; (env["OMP_NUM_THREADS"] == "1") != several {
			t.Errorf("OMP_NUM_THREADS is %q with several processes: %v", env["OMP_NUM_THREADS"], several)
		}
	}
	s = spec("jax", "worker", 2)
	s.Roles[0].Processes = 2
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	a := attempt(s, runtime.Tasks(s)[1])
	a.Local = 1
	if _, env, err := runtime.Command(s, a); err != nil || env["JAX_NUM_PROCESSES"] != "4" || env["JAX_PROCESS_ID"] != "3" {
		t.Errorf("JAX: %v, %v", env, err)
	}
}

// TestVisibleGPUs: processes of PyTorch see all GPUs of their task and choose by LOCAL_RANK,
// as under torchrun; others see their own share.
func TestVisibleGPUs(t *testing.T) {
	for _, c := range []struct {
		framework string
		gpus      []string
		processes int32
		want      []string // of each process
	}{
		{"pytorch", []string{"2", "3"}, 2, []string{"2,3", "2,3"}},
		{"jax", []string{"2", "3"}, 2, []string{"2", "3"}},
		{"jax", []string{"2", "3"}, 1, []string{"2,3"}},
		{"none", []string{"0", "1", "2", "3"}, 3, []string{"0", "1", "2,3"}},
		{"none", []string{"5", "7"}, 4, []string{"5", "5", "7", "7"}},
		{"none", []string{}, 2, []string{"-1", "-1"}},
		{"none", nil, 1, []string{""}},
	} {
		s := spec(c.framework, "worker", 1)
		s.Roles[0].Processes = c.processes
		if err := runtime.Complete(s); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range int(c.processes) {
			a := attempt(s, runtime.Tasks(s)[0])
			a.GPUs, a.Local = c.gpus, i
			_, env, err := runtime.Command(s, a)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, env["CUDA_VISIBLE_DEVICES"])
			if (env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID") != (c.gpus != nil) {
				t.Errorf("the order of GPUs is %q", env["CUDA_DEVICE_ORDER"])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %d processes with %q see %q, want %q", c.framework, c.processes, c.gpus, got, c.want)
		}
	}
}

// TestMorePorts: a task has as many as its command names.
func TestMorePorts(t *testing.T) {
	for _, c := range []struct {
		framework string
		command   []string
		env       map[string]string
		task      int
		want      int
	}{
		{"none", []string{"serve", "{port}"}, nil, 0, 0},
		{"none", []string{"serve", "--grpc={port}", "--http={port2}"}, nil, 1, 1},
		{"none", []string{"serve"}, map[string]string{"DEBUG": "{host}:{port3}"}, 0, 2},
		{"tensorflow", []string{"train", "{port}"}, nil, 0, 1}, // TensorBoard's
		{"tensorflow", []string{"train", "{port}"}, nil, 1, 0},
		{"tensorflow", []string{"train", "{port2}"}, nil, 0, 1},
		{"tensorflow", []string{"train", "{port3}"}, nil, 0, 2},
	} {
		s := spec(c.framework, "worker", 2)
		s.Command, s.Env = c.command, c.env
		task := runtime.Tasks(s)[c.task]
		if got := runtime.MorePorts(s, task); got != c.want {
			t.Errorf("%s %q %v: %s has %d more ports, want %d", c.framework, c.command, c.env, task.Name, got, c.want)
		}
	}
	s := spec("none", "worker", 1)
	s.Command = []string{"serve", "{port2}", "--debug={port3}", "{port4}"}
	a := attempt(s, runtime.Tasks(s)[0])
	a.MorePorts = []int{20100, 20200}
	argv, _, err := runtime.Command(s, a)
	if want := []string{"serve", "20100", "--debug=20200", "{port4}"}; err != nil || !slices.Equal(argv, want) {
		t.Errorf("the command is %q, %v, want %q", argv, err, want)
	}
	if left, known := runtime.Left(s, "{port4}{port2}"); !slices.Equal(left, []string{"port4"}) || !slices.Contains(known, "port2") {
		t.Errorf("left as they are: %q; known: %q", left, known)
	}
}

// TestOneProcessIsWarm: a warm interpreter starts one process at a time.
func TestOneProcessIsWarm(t *testing.T) {
	s := spec("none", "worker", 1)
	for processes, want := range map[int32]bool{1: true, 2: false} {
		c := spec("tensorflow", "tensorboard", 1, "worker", 1)
		c.Roles[0].Processes = processes
		_, env := command(t, c, "tensorboard-0")
		if _, warm := env[proto.EnvWarm]; warm != want {
			t.Errorf("with %d processes the warm interpreter is wanted: %v", processes, warm)
		}
	}
	_, env := command(t, s, "worker-0")
	if slices.Contains(slices.Collect(maps.Keys(env)), proto.EnvWarm) {
		t.Error("none has a warm interpreter")
	}
}
