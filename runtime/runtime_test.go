package runtime_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
	"holdfast/test/bound"
)

const (
	alone    = proto.LossRule_LOSS_RULE_ALONE
	together = proto.LossRule_LOSS_RULE_ALL
	required = proto.CompletionRule_COMPLETION_RULE_REQUIRED
	service  = proto.CompletionRule_COMPLETION_RULE_SERVICE
	optional = proto.CompletionRule_COMPLETION_RULE_OPTIONAL
)

// spec makes a job from role, count, role, count, ...
func spec(framework string, roles ...any) *proto.JobSpec {
	s := &proto.JobSpec{Framework: framework, Command: []string{"train"}}
	for i := 0; i < len(roles); i += 2 {
		s.Roles = append(s.Roles, &proto.RoleSpec{Name: roles[i].(string), Count: int32(roles[i+1].(int))})
	}
	return s
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		framework, role string
		loss            proto.LossRule
		completion      proto.CompletionRule
	}{
		{"tensorflow", "ps", alone, service},
		{"tensorflow", "worker", alone, required},
		{"tensorflow", "chief", alone, required},
		{"tensorflow", "evaluator", alone, optional},
		{"tensorflow", "tensorboard", alone, optional},
		{"tensorflow", "reader", alone, required},
		{"pytorch", "worker", together, required},
		{"pytorch", "node", together, required},
		{"pytorch", "tensorboard", alone, optional},
		{"jax", "worker", together, required},
		{"horovod", "worker", together, required},
		{"xgboost", "worker", together, required},
		{"lightgbm", "worker", together, required},
		{"ray", "head", alone, required},
		{"ray", "worker", alone, either},
		{"none", "ps", alone, service},
		{"none", "worker", alone, required},
		{"none", "evaluator", alone, required},
		{"", "worker", alone, required},
	} {
		s := spec(c.framework, "boss", 1, c.role, 1)
		if err := runtime.Complete(s); err != nil {
			t.Errorf("%s, role %s: %v", c.framework, c.role, err)
			continue
		}
		if r := s.Roles[1]; r.Loss != c.loss || r.Completion != c.completion {
			t.Errorf("%s, role %s: %v and %v, want %v and %v", c.framework, c.role, r.Loss, r.Completion, c.loss, c.completion)
		}
	}
}

// TestMirroredWorkers: without parameter servers, TensorFlow's workers are ranks of one
// group.
func TestMirroredWorkers(t *testing.T) {
	for _, c := range []struct {
		name string
		spec *proto.JobSpec
		want proto.LossRule
	}{
		{"workers", spec("tensorflow", "worker", 2), together},
		{"a chief and a worker", spec("tensorflow", "worker", 1, "chief", 1, "evaluator", 1), together},
		{"one worker", spec("tensorflow", "worker", 1, "evaluator", 1), alone},
		{"parameter servers", spec("tensorflow", "worker", 2, "ps", 1), alone},
	} {
		if err := runtime.Complete(c.spec); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if r := c.spec.Roles[0]; r.Loss != c.want || r.Completion != required {
			t.Errorf("%s: %v and %v, want %v", c.name, r.Loss, r.Completion, c.want)
		}
	}
}

// TestWorkersOfACoordinator: with a chief and parameter servers, TensorFlow 2's workers
// are servers.
func TestWorkersOfACoordinator(t *testing.T) {
	for _, c := range []struct {
		name string
		spec *proto.JobSpec
		want proto.CompletionRule
	}{
		{"all three", spec("tensorflow", "worker", 2, "ps", 1, "chief", 1), proto.CompletionRule_COMPLETION_RULE_EITHER},
		{"no chief", spec("tensorflow", "worker", 2, "ps", 1, "chief", 0), required},
		{"no parameter server", spec("tensorflow", "worker", 2, "chief", 1), required},
		{"no framework", spec("none", "worker", 2, "ps", 1, "chief", 1), required},
		{"TensorFlow 1", func() *proto.JobSpec {
			s := spec("tensorflow", "worker", 2, "ps", 1, "chief", 1)
			s.Tf1 = true
			return s
		}(), required},
	} {
		if err := runtime.Complete(c.spec); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := c.spec.Roles[0].Completion; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCompleteRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		spec *proto.JobSpec
		says []string
	}{
		{"framework", spec("caffe", "worker", 1), []string{"caffe", "tensorflow"}},
		{"no task", spec("none"), []string{"no tasks", "--worker"}},
		{"only zeros", spec("none", "worker", 0), []string{"no tasks"}},
		{"only services", spec("tensorflow", "ps", 2), []string{"never end", "ps", "--worker"}},
		{"only lookers-on", spec("pytorch", "tensorboard", 1), []string{"never end"}},
		{"name", spec("none", "Big Worker", 1), []string{"Big Worker", "small letters"}},
		{"name ends badly", spec("none", "worker-", 1), []string{"worker-"}},
		{"twice", spec("none", "worker", 1, "worker", 2), []string{"worker", "twice"}},
		{"one variable", spec("none", "a-b", 1, "a_b", 2), []string{"a-b", "a_b", "HOLDFAST_A_B_HOSTS"}},
		{"negative", spec("none", "worker", -1), []string{"worker", "-1"}},
		{"two chiefs", spec("tensorflow", "chief", 2, "worker", 1), []string{"chief", "2"}},
		{"too many", spec("none", "worker", 70000), []string{"70000", "65024"}},
		{"no command", &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}}, []string{"worker", "command", "--"}},
		{"tf1 elsewhere", func() *proto.JobSpec { s := spec("pytorch", "worker", 1); s.Tf1 = true; return s }(), []string{"--tf1", "pytorch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := runtime.Complete(c.spec)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.says {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestRolesWithoutTasksAreDropped(t *testing.T) {
	s := spec("tensorflow", "ps", 0, "worker", 2)
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	if len(s.Roles) != 1 || s.Roles[0].Name != "worker" {
		t.Errorf("roles %v", s.Roles)
	}
}

func TestTasks(t *testing.T) {
	got := runtime.Tasks(spec("none", "worker", 2, "ps", 1))
	want := []framework.Task{{Name: "worker-0", Role: "worker", Index: 0}, {Name: "worker-1", Role: "worker", Index: 1}, {Name: "ps-0", Role: "ps", Index: 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVirtualAddresses(t *testing.T) {
	for i, want := range map[int]string{0: "127.77.0.1", 253: "127.77.0.254", 254: "127.77.1.1", 65023: "127.77.255.254"} {
		if got := runtime.VirtualAddress(i); got != want {
			t.Errorf("address %d is %s, want %s", i, got, want)
		}
	}
	seen := map[netip.Addr]bool{}
	for i := range 65024 {
		a, err := netip.ParseAddr(runtime.VirtualAddress(i))
		if err != nil || seen[a] || !netip.MustParsePrefix("127.77.0.0/16").Contains(a) || a.As4()[3] == 0 || a.As4()[3] == 255 {
			t.Fatalf("address %d is %s: %v", i, runtime.VirtualAddress(i), err)
		}
		seen[a] = true
	}
}

// peers gives every task of the job the port 20000 and up.
func peers(s *proto.JobSpec) map[string]int {
	p := map[string]int{}
	for i, t := range runtime.Tasks(s) {
		p[t.Name] = 20000 + i
	}
	return p
}

// attempt is the third of a task, after all were started again once.
func attempt(s *proto.JobSpec, task framework.Task) framework.Attempt {
	return framework.Attempt{Task: task, Number: 2, Generation: 1, Job: "job-7", Ports: peers(s), Host: "n7.example"}
}

func command(t *testing.T, s *proto.JobSpec, name string) ([]string, map[string]string) {
	t.Helper()
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	for _, task := range runtime.Tasks(s) {
		if task.Name == name {
			argv, env, err := runtime.Command(s, attempt(s, task))
			if err != nil {
				t.Fatal(err)
			}
			return argv, env
		}
	}
	t.Fatalf("no task %s", name)
	return nil, nil
}

func TestPlaceholders(t *testing.T) {
	for in, want := range map[string]string{
		"--job_name={role}":                "--job_name=worker",
		"{index}":                          "1",
		"{role}-{index}={task}":            "worker-1=worker-1",
		"{role}{index}{port}":              "worker120003",
		"--ps={ps_hosts}":                  "--ps=ps-0:20000,ps-1:20001",
		"{worker_hosts}":                   "worker-0:20002,worker-1:20003",
		"{data-reader_hosts}":              "data-reader-0:20004",
		"{chief_hosts}":                    "",
		"{other_hosts}":                    "{other_hosts}",
		"{batch}":                          "{batch}",
		"{{role}}":                         "{worker}",
		"{role":                            "{role",
		"role}":                            "role}",
		"{}":                               "{}",
		"{ role }":                         "{ role }",
		"${index}":                         "${index}",
		"${role}{role}":                    "${role}worker",
		`{"type": "{role}", "n": {index}}`: `{"type": "worker", "n": 1}`,
		"ä{role}ö":                         "äworkerö",
		"{rank} of {world_size}":           "3 of 5",
		"{node_rank}":                      "3",
		"{master_addr}:{master_port}":      "ps-0:20000",
		"{host} {attempt}":                 "n7.example 2",
		"{cluster_json}":                   `{"data-reader":["data-reader-0:20004"],"ps":["ps-0:20000","ps-1:20001"],"worker":["worker-0:20002","worker-1:20003"]}`,
		"":                                 "",
	} {
		s := spec("none", "ps", 2, "worker", 2, "data-reader", 1)
		s.Command = []string{"train", in}
		s.Env = map[string]string{"WHAT": in}
		argv, env := command(t, s, "worker-1")
		if argv[1] != want || env["WHAT"] != want {
			t.Errorf("%q becomes %q and, in the environment, %q; want %q", in, argv[1], env["WHAT"], want)
		}
	}
}

// TestPlaceholdersOfRanks: a looker-on is no rank, and where names do not resolve an
// address stands for them.
func TestPlaceholdersOfRanks(t *testing.T) {
	s := spec("pytorch", "tensorboard", 1, "worker", 2)
	s.Command = []string{"{rank}/{world_size}", "{node_rank}", "{master_addr}:{master_port}", "{cluster_json}"}
	const cluster = `{"worker":["worker-0:20001","worker-1:20002"]}`
	if argv, _ := command(t, s, "worker-1"); !slices.Equal(argv, []string{"1/2", "1", "worker-0:20001", cluster}) {
		t.Errorf("worker-1 runs %q", argv)
	}
	if argv, _ := command(t, s, "tensorboard-0"); !slices.Equal(argv, []string{"/2", "", "worker-0:20001", cluster}) {
		t.Errorf("tensorboard-0 runs %q", argv)
	}
	a := attempt(s, runtime.Tasks(s)[2])
	a.Addresses = map[string]string{"worker-0": "127.77.0.2"}
	if argv, _, err := runtime.Command(s, a); err != nil || argv[2] != "127.77.0.2:20001" {
		t.Errorf("without names: %q, %v", argv, err)
	}
}

func TestARoleHasItsOwnCommand(t *testing.T) {
	s := spec("none", "ps", 1, "worker", 1)
	s.Roles[0].Command = []string{"serve", "{task}"}
	if argv, _ := command(t, s, "ps-0"); !slices.Equal(argv, []string{"serve", "ps-0"}) {
		t.Errorf("ps-0 runs %q", argv)
	}
	if argv, _ := command(t, s, "worker-0"); !slices.Equal(argv, []string{"train"}) {
		t.Errorf("worker-0 runs %q", argv)
	}
}

func TestOwnVariables(t *testing.T) {
	s := spec("none", "ps", 1, "data-reader", 2)
	s.Env = map[string]string{"HOLDFAST_TASK": "mine", "COLOUR": "red"}
	_, env := command(t, s, "data-reader-1")
	want := map[string]string{
		"HOLDFAST_FRAMEWORK": "none", "HOLDFAST_TASK": "data-reader-1", "HOLDFAST_ROLE": "data-reader", "HOLDFAST_INDEX": "1",
		"HOLDFAST_HOST": "n7.example", "HOLDFAST_JOB": "job-7", "HOLDFAST_ATTEMPT": "2", "HOLDFAST_GENERATION": "1", "HOLDFAST_LOCAL_RANK": "0", "HOLDFAST_WORLD_MAX": "3",
		"HOLDFAST_PORT": "20002", "HOLDFAST_PS_HOSTS": "ps-0:20000", "HOLDFAST_DATA_READER_HOSTS": "data-reader-0:20001,data-reader-1:20002",
		"COLOUR": "red",
	}
	if !reflect.DeepEqual(env, want) {
		t.Errorf("got %v\nwant %v", env, want)
	}
}

func TestTensorFlowVariables(t *testing.T) {
	for _, c := range []struct{ task, config string }{
		{"worker-1", `{"cluster":{"chief":["chief-0:20003"],"ps":["ps-0:20000"],"worker":["worker-0:20001","worker-1:20002"]},"task":{"type":"worker","index":1}}`},
		{"chief-0", `{"cluster":{"chief":["chief-0:20003"],"ps":["ps-0:20000"],"worker":["worker-0:20001","worker-1:20002"]},"task":{"type":"chief","index":0}}`},
		{"evaluator-0", `{"cluster":{"chief":["chief-0:20003"],"ps":["ps-0:20000"],"worker":["worker-0:20001","worker-1:20002"]},"task":{"type":"evaluator","index":0}}`},
	} {
		s := spec("tensorflow", "ps", 1, "worker", 2, "chief", 1, "evaluator", 1)
		s.Tf1 = true
		_, env := command(t, s, c.task)
		if !json.Valid([]byte(env["TF_CONFIG"])) || env["TF_CONFIG"] != c.config {
			t.Errorf("%s: TF_CONFIG is\n%s, want\n%s", c.task, env["TF_CONFIG"], c.config)
		}
		for k, v := range map[string]string{"HOLDFAST_FAIL_FAST": "1", "HOLDFAST_COORDINATOR_EXIT": "1", "HOLDFAST_TF1": "1", "HOLDFAST_RECOVERY_WAIT_SECS": "1", "HOLDFAST_NAME_LOST_PEERS": "1", "HOLDFAST_DEVICE_FILTERS": "1", proto.EnvLinger: "1", "PYTHONUNBUFFERED": "1", "HOLDFAST_WARM": "tensorflow"} {
			if env[k] != v {
				t.Errorf("%s: %s is %q, want %q", c.task, k, env[k], v)
			}
		}
	}
	s := spec("tensorflow", "ps", 1, "worker", 1)
	s.KeepInterpreterWaits, s.Cold = true, true
	s.Env = map[string]string{"GRPC_FAIL_FAST": "false", "HOLDFAST_FAIL_FAST": "0", "HOLDFAST_NAME_LOST_PEERS": "0", "HOLDFAST_COORDINATOR_EXIT": "0", "HOLDFAST_DEVICE_FILTERS": "0", proto.EnvLinger: "0"}
	_, env := command(t, s, "worker-0")
	if _, ok := env["HOLDFAST_RECOVERY_WAIT_SECS"]; ok {
		t.Error("the waits were to be kept")
	}
	if _, ok := env["HOLDFAST_WARM"]; ok {
		t.Error("no warm interpreter was wanted")
	}
	if _, ok := env["HOLDFAST_TF1"]; ok {
		t.Error("nobody asked for TensorFlow 1")
	}
	for k, v := range s.Env {
		if env[k] != v {
			t.Errorf("the user's %s became %q", k, env[k])
		}
	}
}

// TestOtherLaunchersVariables: what scripts of TonY and XLearning read.
func TestOtherLaunchersVariables(t *testing.T) {
	const cluster = `{"ps":["ps-0:20000"],"worker":["worker-0:20001","worker-1:20002"]}`
	s := spec("tensorflow", "ps", 1, "worker", 2, "evaluator", 1)
	_, env := command(t, s, "worker-1")
	for k, v := range map[string]string{
		"CLUSTER_SPEC": cluster, "JOB_NAME": "worker", "TASK_INDEX": "1", "TASK_NUM": "2",
		"TF_CLUSTER_DEF": cluster, "TF_ROLE": "worker", "TF_INDEX": "1", "TB_PORT": "",
	} {
		if env[k] != v {
			t.Errorf("%s is %q, want %q", k, env[k], v)
		}
	}
	for _, c := range []struct {
		spec *proto.JobSpec
		task string // that has TensorBoard's port
	}{
		{s, "worker-0"},
		{spec("tensorflow", "worker", 2, "chief", 1), "chief-0"},
		{spec("pytorch", "worker", 1), ""},
	} {
		for _, task := range runtime.Tasks(c.spec) {
			want := 0
			if task.Name == c.task {
				want = 1
			}
			if got := runtime.MorePorts(c.spec, task); got != want {
				t.Errorf("%s of %v gets %d more ports, want %d", task.Name, c.spec.Roles, got, want)
			}
		}
	}
	for i, want := range []string{"6006", ""} {
		a := attempt(s, runtime.Tasks(s)[1+i])
		a.MorePorts = []int{6006}
		if _, env, err := runtime.Command(s, a); err != nil || env["TB_PORT"] != want {
			t.Errorf("TB_PORT of %s is %q, want %q; %v", a.Task.Name, env["TB_PORT"], want, err)
		}
	}
}

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		framework, task string
		want            map[string]string
	}{
		{"pytorch", "worker-0", map[string]string{"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "boss-0", "MASTER_PORT": "20001"}},
		{"pytorch", "worker-0", map[string]string{
			"NODE_RANK": "1", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "3", "ROLE_NAME": "default", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "3",
			"TORCHELASTIC_RUN_ID": "job-7", "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_USE_AGENT_STORE": "",
		}},
		{"pytorch", "worker-0", map[string]string{
			"PET_NNODES": "3", "PET_NODE_RANK": "1", "PET_NPROC_PER_NODE": "1", "PET_MASTER_ADDR": "boss-0", "PET_MASTER_PORT": "20001",
			"PET_LOCAL_ADDR": "worker-0", "PET_RDZV_ID": "job-7-1", "PET_RDZV_CONF": "is_host=false", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
		}},
		{"pytorch", "worker-1", map[string]string{"HOLDFAST_DEEPSPEED_HOSTS": "boss-0:1,worker-0:1,worker-1:1"}},
		{"pytorch", "worker-1", map[string]string{ // TonY's
			"JOB_NAME": "worker", "TASK_INDEX": "1", "TASK_NUM": "3", "INIT_METHOD": "tcp://boss-0:20001", "WORLD": "3",
		}},
		{"horovod", "worker-1", map[string]string{"JOB_NAME": "worker", "TASK_INDEX": "1", "TASK_NUM": "3"}},
		{"pytorch", "boss-0", map[string]string{"PET_NODE_RANK": "0", "PET_RDZV_CONF": "is_host=true"}},
		{"pytorch", "boss-0", map[string]string{"RANK": "0"}},
		{"pytorch", "tensorboard-0", map[string]string{"RANK": "", "MASTER_ADDR": "", "PET_NNODES": "", "TORCHELASTIC_RUN_ID": ""}},
		{"jax", "worker-1", map[string]string{"JAX_COORDINATOR_ADDRESS": "boss-0:20001", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "2", "RANK": ""}},
	} {
		_, env := command(t, spec(c.framework, "tensorboard", 1, "boss", 1, "worker", 2), c.task)
		for k, v := range c.want {
			if env[k] != v {
				t.Errorf("%s, %s: %s is %q, want %q", c.framework, c.task, k, env[k], v)
			}
		}
	}
}

// TestTorchrun: it starts a process for each GPU of its container, and where
// connections are forwarded it is reached on ports of its own choice by the node's
// address only.
func TestTorchrun(t *testing.T) {
	s := spec("pytorch", "worker", 2)
	s.Command, s.Roles[0].Gpus = []string{"torchrun", "train.py"}, 4
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	a := attempt(s, runtime.Tasks(s)[1])
	if _, env, err := runtime.Command(s, a); err != nil || env["GLOO_SOCKET_IFNAME"] != "" {
		t.Errorf("%v, %v", env, err)
	}
	a.Forwarded, a.Interface = true, "eth1"
	_, env, err := runtime.Command(s, a)
	if err != nil || env["PET_NPROC_PER_NODE"] != "4" || env["HOLDFAST_DEEPSPEED_HOSTS"] != "worker-0:4,worker-1:4" || env["PET_LOCAL_ADDR"] != "n7.example" || env["GLOO_SOCKET_IFNAME"] != "eth1" {
		t.Errorf("%v, %v", env, err)
	}
	s.Env = map[string]string{"GLOO_SOCKET_IFNAME": "ib0"}
	if _, env, err := runtime.Command(s, a); err != nil || env["GLOO_SOCKET_IFNAME"] != "ib0" || env["NCCL_SOCKET_IFNAME"] != "eth1" {
		t.Errorf("%v, %v", env, err)
	}
}

// TestVariablesOfTasks: a warm interpreter serves any task and attempt.
// TestTorchrunThatRestartsItsProcesses: where it would wait for ever, that is said.
func TestTorchrunThatRestartsItsProcesses(t *testing.T) {
	for command, warned := range map[string]bool{
		"torchrun --max-restarts=3 train.py":                                                 true,
		"torchrun --max_restarts 3 train.py":                                                 true,
		"bash -c exec_torchrun_--max-restarts_3_train.py":                                    true,
		"accelerate launch --max_restarts 3 train.py":                                        true,
		"torchrun train.py":                                                                  false,
		"torchrun --max-restarts=0 train.py":                                                 false,
		"torchrun train.py --max-restarts 3":                                                 false,
		"torchrun --max-restarts=3 --rdzv-backend=c10d --rdzv-endpoint=h:1 train.py":         false,
		"python -m torch.distributed.run --max-restarts 3 --rdzv_backend c10d -m train":      false,
		"python -m torch.distributed.run --max-restarts 3 --rdzv_endpoint worker-0:29400 -m": true,
		"torchrun --standalone --max-restarts=3 train.py":                                    false,
		"python train.py --max-restarts 3":                                                   false,
	} {
		words := strings.Fields(command)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "_torchrun_", " torchrun ")
			if strings.Contains(words[i], " ") {
				words[i] = strings.ReplaceAll(words[i], "_", " ")
			}
		}
		s := spec("pytorch", "worker", 2)
		s.Command = words
		if err := runtime.Complete(s); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(runtime.Notes(s), "\n")
		if strings.Contains(notes, "--rdzv-backend=c10d") != warned {
			t.Errorf("of %q is said %q", words, notes)
		}
		s.Env = map[string]string{"PET_RDZV_BACKEND": "c10d"}
		if notes := runtime.Notes(s); len(notes) > 0 {
			t.Errorf("of %q with c10d is said %q", words, notes)
		}
	}
	alone := spec("pytorch", "worker", 1)
	alone.Command = []string{"torchrun", "--max-restarts=3", "train.py"}
	if err := runtime.Complete(alone); err != nil || len(runtime.Notes(alone)) > 0 {
		t.Errorf("of a single process is said %q, %v", runtime.Notes(alone), err)
	}
}

func TestVariablesOfTasks(t *testing.T) {
	for name, want := range map[string]bool{
		"TF_CONFIG": true, "CLUSTER_SPEC": true, "TB_PORT": true, "RANK": true, "INIT_METHOD": true, "PET_RDZV_CONF": true, "TORCHELASTIC_RESTART_COUNT": true, "TORCHELASTIC_ERROR_FILE": true, "JAX_PROCESS_ID": true,
		"PATH": false, "OMP_NUM_THREADS": false, "PYTHONUNBUFFERED": false,
	} {
		if runtime.SaysWhichTask(name) != want {
			t.Errorf("%s says which task a process is: %v", name, !want)
		}
	}
}

// A port that is missing would give a framework a cluster that cannot work.
func TestCommandNeedsPorts(t *testing.T) {
	s := spec("tensorflow", "ps", 1, "worker", 1)
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"ps-0", "worker-0"} {
		p := peers(s)
		p[missing] = 0
		if _, _, err := runtime.Command(s, framework.Attempt{Task: runtime.Tasks(s)[1], Ports: p}); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without the port of %s: %v", missing, err)
		}
	}
	if _, _, err := runtime.Command(s, attempt(s, framework.Task{Name: "ps-7", Role: "ps", Index: 7})); err == nil {
		t.Error("ps-7 is no task of the job")
	}
}

func FuzzPlaceholders(f *testing.F) {
	f.Add("{role}-{index}")
	f.Add("${role}{{x}_hosts}")
	f.Fuzz(func(t *testing.T, word string) {
		defer bound.Memory(t, len(word), 64)()
		s := spec("none", "worker", 2)
		s.Command = []string{"train", word}
		if err := runtime.Complete(s); err != nil {
			t.Fatal(err)
		}
		argv, _, err := runtime.Command(s, attempt(s, runtime.Tasks(s)[1]))
		if err != nil || len(argv) != 2 {
			t.Fatalf("%q, %v", argv, err)
		}
		if !strings.Contains(word, "{") && argv[1] != word {
			t.Errorf("%q became %q", word, argv[1])
		}
	})
}

func TestPeerPorts(t *testing.T) {
	seen := map[int]bool{}
	for i := range 10000 {
		p := runtime.PeerPort("application_1_0001", i)
		if seen[p] || p < proto.LowestPort || p >= 32768 {
			t.Fatalf("task %d is known under port %d", i, p)
		}
		seen[p] = true
	}
	if runtime.PeerPort("application_1_0001", 0) == runtime.PeerPort("application_1_0002", 0) {
		t.Error("two jobs have the same ports")
	}
}
