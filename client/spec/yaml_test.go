package spec_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client/spec"
	"holdfast/proto"
)

// TestWhatIsPrintedIsRead: a job that was printed as YAML is read as the same
// job, whatever stands in it.
func TestWhatIsPrintedIsRead(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", "/bin")
	write(t, filepath.Join(dir, "job.yaml"), `
name: "null"
queue: q
node-label: cpu
avoid-node: [n1, n2]
tags: [one, "two, three"]
priority: 4
lifetime: 26h
reservation: reservation_1700000000000_0001
log-include: "agent.*"
log-exclude: ".*err"
framework: tensorflow
roles:
  reader: {count: 2, command: [python, "a b.py", "x: y\n# z", "{index}"]}
  evaluator: {count: 1, finish: 1m}
  worker: {count: {min: 2, max: 4, multiple: 2}, node-label: cpu, spread: true, anti-affinity: [ps], image: me/worker, web: /lab, memory: 1.5g, memory-max: 3g, vcores: 2, gpus: 1, resource: {yarn.io/fpga: 1, example.com/disk: 100G}, command: [sh, -c, "\nfor s in 1; do\n\td=$s\n\techo '{a: '$s'}' > $d || exit 1\n\trm x\ndone"]}
  ps: {count: 1, pack: true}
command: [sh, -c, "echo '{task}'; exit 0"]
env: {A: "3", B: "", C: "true", D: "x=y", E: "one\n  two: 2\n\tthree"}
checkpoints: {./logs: "file:///ck", /state: {uri: "hdfs:///user/me/state", format: plain, marker: _SUCCESS}, /more: {uri: "hdfs:///user/me/more", format: plain, quiet: 90s, share: true}}
files: [train.py, "data#in/put"]
archives: ["venv.tar.gz#venv"]
restarts: 0
spares: 2
start-limit: 10m
stop-grace: 30s
elastic-wait: 0s
elastic-grow: 5m
tf1: true
progress: "at (\\d+)"
total-steps: 500
keep-interpreter-waits: true
no-warm: true
principal: me@X
keytab: me.keytab
view-acl: "a,b c"
modify-acl: "*"
image: registry.example:5000/me/tf:2.16
image-runtime: docker
image-mounts: ["/etc/passwd:/etc/passwd", "/data:/in:rw"]
am-memory: 512m
am-vcores: 2
image-network: host
image-privileged: true
history-url: https://history/jobs
notify: https://hooks/in?token=x
`)
	write(t, filepath.Join(dir, "local.yaml"), `{local: true, framework: jax, roles: {worker: 2}, command: "true", checkpoints: {logs: ck}, restart-stalled: 10m, straggler-time: 5m, straggler-factor: 1.5, straggler-moves: 2}`)
	write(t, filepath.Join(dir, "replicas.yaml"), `{local: true, roles: {replica: 2..4}, command: "true"}`)
	printed := &proto.JobSpec{} // with all that they have
	for _, name := range []string{"job.yaml", "local.yaml", "replicas.yaml"} {
		first, err := spec.ReadDraft(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := first.Spec()
		if err != nil {
			t.Fatal(err)
		}
		text, err := first.YAML(want)
		if err != nil {
			t.Fatal(err)
		}
		second, err := spec.ParseDraft(text, "/elsewhere")
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		got, err := second.Spec()
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if !pb.Equal(got, want) || second.Principal != first.Principal || second.Keytab != first.Keytab && second.Keytab != filepath.Join(dir, first.Keytab) {
			t.Errorf("it was:\n%s\nand is:\n%s\nby:\n%s", protojson.Format(want), protojson.Format(got), text)
		}
		if len(first.Inputs) != len(second.Inputs) {
			t.Fatalf("the inputs were %v, and are %v", first.Inputs, second.Inputs)
		}
		for i := range first.Inputs {
			if first.Inputs[i] != second.Inputs[i] {
				t.Errorf("the input was %v, and is %v", first.Inputs[i], second.Inputs[i])
			}
		}
		pb.Merge(printed, want)
	}
	// What specs can say, the jobs above say: YAML must have it.
	printed.Files = []*proto.FileSpec{{}} // of the inputs
	pb.Merge(printed.Checkpoints[1], printed.Checkpoints[2])
	worker := role(t, printed, "worker")
	pb.Merge(worker, role(t, printed, "evaluator"))  // which alone has finish
	pb.Merge(worker, role(t, printed, "lighthouse")) // which alone coordinates
	pb.Merge(worker, role(t, printed, "ps"))         // which alone is packed
	for _, r := range printed.Roles {
		if r.SavesTogether {
			pb.Merge(worker, r)
		}
	}
	for _, m := range []pb.Message{printed, worker, printed.Checkpoints[1]} {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); !m.ProtoReflect().Has(f) {
				t.Errorf("no job here sets %s: have one do so, and Draft.YAML write it", f.FullName())
			}
		}
	}
	// The flags' form of a job is as good.
	cmd := &cobra.Command{Use: "run"}
	flags := spec.AddFlags(cmd, spec.Scan(nil), nil)
	if err := cmd.ParseFlags([]string{"--worker", "2", "--worker-memory", "300m", "--", "true"}); err != nil {
		t.Fatal(err)
	}
	draft, err := flags.Draft(cmd.Flags().Args())
	if err != nil {
		t.Fatal(err)
	}
	made, err := draft.Spec()
	if err != nil {
		t.Fatal(err)
	}
	text, err := draft.YAML(made)
	if err != nil {
		t.Fatal(err)
	}
	want := `name: "true"
framework: none
roles:
  worker:
    count: 2
    memory: 300m
    vcores: 1
command: ["true"]
restarts: 3
restart-stalled: 10m
straggler-time: 2m
straggler-factor: 2
stop-grace: 5s
`
	if string(text) != want {
		t.Errorf("it is printed as:\n%s", text)
	}
}

// TestWhatAFrameworkAddsIsNotTheUsers: what is printed of a job can be changed, and what its
// framework makes of it changes along.
func TestWhatAFrameworkAddsIsNotTheUsers(t *testing.T) {
	first, err := spec.ParseDraft([]byte(`{local: true, roles: {replica: 2..4}, command: "true"}`), "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, least := range []string{"2", "3"} {
		first.Role("replica").Min = int32(least[0] - '0')
		job, err := first.Spec()
		if err != nil {
			t.Fatal(err)
		}
		if words := strings.Join(role(t, job, "lighthouse").Command, " "); !strings.Contains(words, "--min_replicas "+least) {
			t.Errorf("with at least %s replica groups, the lighthouse is %s", least, words)
		}
		text, err := first.YAML(job)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := first.Spec(); err != nil || !pb.Equal(again, job) {
			t.Errorf("printing changes the job: %v, %v", again, err)
		}
		if first, err = spec.ParseDraft(text, "/"); err != nil {
			t.Fatal(err)
		}
	}
}
