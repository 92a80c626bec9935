package runtime_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container/proctree"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
	"holdfast/test/ports"
	"holdfast/test/pyenv"
)

const either = proto.CompletionRule_COMPLETION_RULE_EITHER

// TestRolesOfRay: a job of Ray has a head, whose program is the job's; workers come and go.
func TestRolesOfRay(t *testing.T) {
	job := spec("ray", "tensorboard", 1, "worker", 3)
	job.Roles[0].MemoryMb, job.Roles[0].Vcores, job.Roles[0].Gpus = 1000, 3, 1
	job.Roles[0].Image = "ours/ray"
	job.Roles[1].Min = 2
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	head := job.Roles[0]
	if head.Name != "head" || head.Count != 1 || head.MemoryMb != 1000 || head.Vcores != 3 || head.Image != "ours/ray" || head.Gpus != 0 || len(job.Roles) != 3 {
		t.Errorf("the head that was added is %v", head)
	}
	for i, want := range []proto.CompletionRule{required, optional, either} {
		if r := job.Roles[i]; r.Loss != alone || r.Completion != want {
			t.Errorf("%s: %v and %v", r.Name, r.Loss, r.Completion)
		}
	}
	own := spec("ray", "worker", 1, "head", 1)
	if err := runtime.Complete(own); err != nil || len(own.Roles) != 2 {
		t.Errorf("with a head of its own: %v, %v", own.Roles, err)
	}
	for want, change := range map[string]func(*proto.RoleSpec){
		"--head 1 --worker N":        func(r *proto.RoleSpec) { r.Name, r.Count = "head", 2 },
		"--worker-vcores 4":          func(r *proto.RoleSpec) { r.Processes = 4 },
		"only the head of a cluster": func(r *proto.RoleSpec) { r.Command = []string{"x"} },
	} {
		job := spec("ray", "worker", 1)
		change(job.Roles[0])
		if err := runtime.Complete(job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestCommandsOfRay: nodes are as large as their containers; programs of any kind run beside
// the head, with the user's placeholders.
func TestCommandsOfRay(t *testing.T) {
	job := spec("ray", "head", 1, "worker", 1, "tensorboard", 1)
	job.Command = []string{"env/bin/python3", "-u", "train.py", "{task}"}
	job.Roles[1].MemoryMb, job.Roles[1].Vcores, job.Roles[1].Gpus = 10<<10, 8, 2
	job.Roles[0].Command = []string{"bash", "-c", "x {port}"}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{"head-0": 20000, "worker-0": 20001, "tensorboard-0": 20002}
	for i, want := range []string{
		"python3 -m _holdfast.ray --num-cpus=1 --object-store-memory=78643200 --memory=78643200 -- bash -c x 20000; RAY_ADDRESS=node7:20000",
		"env/bin/python3 -m _holdfast.ray --num-cpus=8 --object-store-memory=3221225472 --memory=7516192768 --num-gpus=2; RAY_ADDRESS=head-0:20000",
		"env/bin/python3 -u train.py tensorboard-0; RAY_ADDRESS=",
	} {
		argv, env, err := runtime.Command(job, framework.Attempt{Task: runtime.Tasks(job)[i], Ports: ports, Host: "node7"})
		if got := strings.Join(argv, " ") + "; RAY_ADDRESS=" + env["RAY_ADDRESS"]; err != nil || got != want {
			t.Errorf("%s: %v\n%s, want\n%s", runtime.Tasks(job)[i].Name, err, got, want)
		}
	}
}

// TestTheInterpreterOfRay: a program that stands in an environment runs beside its Python.
func TestTheInterpreterOfRay(t *testing.T) {
	job := spec("ray", "head", 1, "worker", 1)
	job.Command = []string{"env/bin/my-train"}
	for _, task := range []string{"head-0", "worker-0"} {
		if argv, _ := command(t, job, task); argv[0] != "env/bin/python3" {
			t.Errorf("%s: %q", task, argv)
		}
	}
}

// rayTask is a task of a job of Ray that runs on this machine.
type rayTask struct {
	cmd   *exec.Cmd
	lines chan string
}

// startRay starts a task. Nothing steers connections: tasks are at the addresses of the
// loopback interface that hosts names.
func startRay(t *testing.T, job *proto.JobSpec, name string, ports map[string]int, hosts map[string]string) *rayTask {
	t.Helper()
	tasks := runtime.Tasks(job)
	task := tasks[slices.IndexFunc(tasks, func(o framework.Task) bool { return o.Name == name })]
	argv, env, err := runtime.Command(job, framework.Attempt{Task: task, Ports: ports, Host: hosts[name], Addresses: hosts})
	if err != nil {
		t.Fatal(err)
	}
	r := &rayTask{exec.CommandContext(t.Context(), argv[0], argv[1:]...), make(chan string, 10000)}
	r.cmd.Env = append(os.Environ(), "PYTHONPATH="+shimDir(t), "TMPDIR="+t.TempDir())
	for k, v := range env {
		r.cmd.Env = append(r.cmd.Env, k+"="+v)
	}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stderr = r.cmd.Stdout
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end ends the task as an agent does, and waits for it.
func (r *rayTask) end(t *testing.T) {
	if r.cmd.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM)
	if err := r.cmd.Wait(); err == nil {
		t.Error("a task that was stopped ended with exit code 0")
	}
}

// until waits for a line that contains text.
func (r *rayTask) until(t *testing.T, text string) {
	t.Helper()
	var all []string
	for deadline := time.After(3 * time.Minute); ; {
		select {
		case l, ok := <-r.lines:
			all = append(all, l)
			if strings.Contains(l, text) {
				return
			}
			if !ok {
				t.Fatalf("it ended without %q; it printed\n%s", text, strings.Join(all, "\n"))
			}
		case <-deadline:
			t.Fatalf("no %q; it printed\n%s", text, strings.Join(all, "\n"))
		}
	}
}

// TestAWorkerOfRaySeesThatItsHeadIsAnother: also where the next head listens before anybody has
// looked. A program that does nothing stands for ray start.
func TestAWorkerOfRaySeesThatItsHeadIsAnother(t *testing.T) {
	job := spec("ray", "head", 1, "worker", 1)
	job.Command = []string{"python3", "train.py"}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "ray"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// head listens, speaks on each connection, and tells when somebody has come.
	head := func(at string) (stop func(), came chan struct{}) {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		var conns []net.Conn
		came, done := make(chan struct{}, 1000), make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				conns = append(conns, c)
				_, _ = c.Write([]byte("settings"))
				came <- struct{}{}
			}
		}()
		return func() {
			l.Close()
			<-done
			for _, c := range conns {
				c.Close()
			}
		}, came
	}
	port := ports.ForTest(t, 1)[0]
	at := fmt.Sprintf("127.0.0.1:%d", port)
	worker := startRay(t, job, "worker-0", map[string]int{"head-0": port, "worker-0": port + 1}, map[string]string{"head-0": "127.0.0.1", "worker-0": "127.0.0.1"})
	stop, came := head(at)
	<-came
	for range 2 {
		stop()
		stop, came = head(at) // at once
		worker.until(t, "is gone; this node joins the next one there")
		<-came
	}
	stop()
}

// TestLongRayFindsItsCluster: ray.init needs no arguments. A worker that was lost comes back into
// the cluster, and workers whose head was lost join the next without an end of their own. The
// job ends as its program does.
func TestLongRayFindsItsCluster(t *testing.T) {
	python, err := pyenv.Ray(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const program = `
import os, signal, sys, time
import ray
ray.init(address="auto" if os.path.exists("again") else None)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
def cpus(n):
    while ray.cluster_resources().get("CPU", 0) != n:
        time.sleep(0.2)
open("again", "w").close()
cpus(7)
@ray.remote(num_cpus=3)
def where():
    import beside
    return ray.util.get_node_ip_address()
print("ran at", ray.get(where.remote()), "objects", ray.cluster_resources()["object_store_memory"], flush=True)
cpus(4)
print("without a worker", flush=True)
cpus(7)
print("with it again", flush=True)
time.sleep(1000)
`
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"train.py": program, "beside.py": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	job := spec("ray", "head", 1, "worker", 2)
	job.Command = []string{python, "train.py"}
	job.Roles[0].MemoryMb, job.Roles[1].MemoryMb, job.Roles[1].Vcores = 1000, 1000, 3
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	portOf, hosts := map[string]int{}, map[string]string{}
	for i, task := range runtime.Tasks(job) {
		hosts[task.Name] = fmt.Sprintf("127.0.0.%d", 2+i)
		// Tasks have ports among those that ray start would keep for its workers.
		for port := 18101; portOf[task.Name] == 0; port++ {
			if l, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", hosts[task.Name], port)); err == nil {
				portOf[task.Name] = port
				l.Close()
			} else if port == 19999 {
				t.Fatal(err)
			}
		}
	}
	worker := startRay(t, job, "worker-0", portOf, hosts)
	other := startRay(t, job, "worker-1", portOf, hosts)
	head := startRay(t, job, "head-0", portOf, hosts)
	head.until(t, "ran at 127.0.0.")
	other.end(t)
	head.until(t, "without a worker")
	startRay(t, job, "worker-1", portOf, hosts)
	head.until(t, "with it again")

	for _, pid := range append(proctree.Descendants(head.cmd.Process.Pid), head.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = head.cmd.Wait()
	worker.until(t, "joins the next one")
	head = startRay(t, job, "head-0", portOf, hosts)
	head.until(t, "ran at 127.0.0.")
	_ = syscall.Kill(-head.cmd.Process.Pid, syscall.SIGTERM)
	if _ = head.cmd.Wait(); head.cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the program's exit code is 7, and that of its task %s", head.cmd.ProcessState)
	}
}
