package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/proto"
)

// TestScriptsThatTasksDoNotGet: what cannot be run is refused where that is
// certain, and nothing else.
func TestScriptsThatTasksDoNotGet(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"here.py", "sub/deep.py", "src/train.py", "src/deep.py"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		command string
		local   bool
		want    string // in the error; empty: none
	}{
		{"python train.py --out here.py", false, ""},
		{"python3.11 -u -W ignore lib/t.py", false, ""},
		{"venv/bin/python venv/bin/tool.py", false, ""},
		{"venv/bin/tool", false, ""},
		{"./data/run.sh", false, ""},
		{"python data", false, ""},
		{"python logs/made.py", false, ""},
		{"python {role}.py", false, ""},
		{"python -c here.py", false, ""},
		{"python -m here.py", false, ""},
		{"python -um here.py", false, ""},
		{"python -", false, ""},
		{"python -Ximporttime none.py", false, "no script none.py"},
		{"python -s none.py", false, "no script none.py"},
		{"python -Werror::DeprecationWarning -- none.py", false, "no script none.py"},
		{"python", false, ""},
		{"sh -ec here.py", false, ""},
		{"bash none.sh", false, ""}, // on the PATH of a node, for all that is known
		{"bash -o pipefail none/none.sh", false, "no script none/none.sh"},
		{"torchrun here.py", false, ""},
		{"/nodes/own.py", false, ""},
		{"python /nodes/own.py", false, ""},
		{"python /nodes/own.py", true, "no script /nodes/own.py"},
		{"python /mnt/ck/made.py", true, ""},
		{"sleep 1000", true, ""},
		{"python here.py", false, "here.py is here, but the tasks do not get it: add --files here.py"},
		{"python ./sub/deep.py", true, "add --files sub/deep.py#sub/deep.py"},
		{"python3 -u src/train.py", true, "src/train.py arrives as train.py: write python3 -u train.py, or --files src/train.py#src/train.py"},
		{"python src/deep.py", true, "src/deep.py is here, but the tasks do not get it: add --files src/deep.py#src/deep.py"}, // another file arrives as deep.py
		{"./here.py", false, "add --files here.py"},
		{"python -u none.py", false, "no script none.py"},
		{"../none.py", true, "no script ../none.py"},
	} {
		spec := &proto.JobSpec{
			Local: c.local, Command: strings.Fields(c.command), Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}},
			Files:       []*proto.FileSpec{{Name: "train.py", Uri: filepath.Join(dir, "src/train.py")}, {Name: "lib/t.py"}, {Name: "data/run.sh"}, {Name: "venv", Archive: true}},
			Checkpoints: []*proto.CheckpointSpec{{Path: "./logs"}, {Path: "/mnt/ck"}},
		}
		err := CheckCommands(spec)
		if (c.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.want) || client.ExitCode(err) != client.ExitUsage) {
			t.Errorf("%s: %v, want %q", c.command, err, c.want)
		}
	}
	for _, c := range []struct {
		program string
		wrong   bool
	}{{"python3 here.py", true}, {"a b.sh", false}, {"/opt/my tools/x", false}, {"x", false}} {
		err := CheckCommands(&proto.JobSpec{Command: []string{c.program}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}, Files: []*proto.FileSpec{{Name: "a b.sh"}}})
		if c.wrong != (err != nil) || err != nil && !strings.Contains(err.Error(), "leave out the quotes") {
			t.Errorf("%q: %v", c.program, err)
		}
	}
	// The whole working directory may have on HDFS what is not here; a local one can be looked at.
	stored := t.TempDir()
	if err := os.WriteFile(filepath.Join(stored, "stored.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script, uri string
		want        string
	}{
		{"none.py", "hdfs:///ck", ""},
		{"here.py", "hdfs:///ck", "add --files here.py"},
		{"../none.py", "hdfs:///ck", "no script ../none.py"},
		{"/nodes/own.py", "hdfs:///ck", ""},
		{"stored.py", stored, ""},
		{"here.py", stored, "add --files here.py"},
		{"none.py", stored, "no script none.py"},
		{"here.py", dir, ""},
	} {
		err := CheckCommands(&proto.JobSpec{
			Local: !strings.HasPrefix(c.uri, "hdfs:"), Command: []string{"python", c.script}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}},
			Checkpoints: []*proto.CheckpointSpec{{Path: ".", Uri: c.uri}},
		})
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with all at %s: %v, want %q", c.script, c.uri, err, c.want)
		}
	}
	// A role's own command is looked at, and the job's only where it is run.
	spec := &proto.JobSpec{Command: []string{"python", "here.py"}, Roles: []*proto.RoleSpec{{Name: "a", Count: 1, Command: []string{"true"}}, {Name: "b"}}}
	if err := CheckCommands(spec); err != nil {
		t.Errorf("a command that nobody runs is refused: %v", err)
	}
	spec.Roles[0].Command = []string{"python", "none.py"}
	if err := CheckCommands(spec); err == nil {
		t.Error("a role's own command is not looked at")
	}
}

// TestMistypedPlaceholders: what is nearly a placeholder is refused, and other braces
// are not.
func TestMistypedPlaceholders(t *testing.T) {
	spec := &proto.JobSpec{
		Command: []string{"sh", "-c", "echo {tsk} {tsk} {task} ${tsk} {worker_host} {reader_hosts} {nnodes} {loss} {} {json} {epoch} {a: 1}"},
		Env:     map[string]string{"A": "{indx}", "B": "{master_adr}:{master_port}"},
		Roles:   []*proto.RoleSpec{{Name: "worker", Count: 2}, {Name: "reader", Count: 1}},
	}
	err := CheckCommands(spec)
	want := `the tasks cannot run their commands:
  - {tsk} is no placeholder; did you mean task? (if it is the program's own, give it another name)
  - {worker_host} is no placeholder; did you mean worker_hosts? (if it is the program's own, give it another name)
  - {nnodes} is no placeholder; did you mean world_size? (if it is the program's own, give it another name)
  - {indx} is no placeholder; did you mean index? (if it is the program's own, give it another name)
  - {master_adr} is no placeholder; did you mean master_addr? (if it is the program's own, give it another name)`
	if err == nil || err.Error() != want || client.ExitCode(err) != client.ExitUsage {
		t.Errorf("refused with:\n%v", err)
	}
}

// TestNotesOfJobsThatDoNotGrow: ranks that were missing join at a checkpoint, or after a time.
func TestNotesOfJobsThatDoNotGrow(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 4, Min: 2, Loss: proto.LossRule_LOSS_RULE_ALL}
	spec := &proto.JobSpec{Command: []string{"true"}, Roles: []*proto.RoleSpec{role}}
	if got := strings.Join(Notes(spec), "\n"); !strings.Contains(got, "--elastic-grow 10m") {
		t.Errorf("without a checkpoint directory is noted: %q", got)
	}
	saves, grows, alone := pb.Clone(spec).(*proto.JobSpec), pb.Clone(spec).(*proto.JobSpec), pb.Clone(spec).(*proto.JobSpec)
	saves.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs"}}
	grows.ElasticGrowMs = 1000
	alone.Roles[0].Loss = proto.LossRule_LOSS_RULE_ALONE
	for _, s := range []*proto.JobSpec{saves, grows, alone} {
		if got := Notes(s); len(got) > 0 {
			t.Errorf("of %v is noted: %q", s, got)
		}
	}
}

// TestNotes: what may have been meant as a placeholder is spoken of.
func TestNotes(t *testing.T) {
	spec := &proto.JobSpec{Command: []string{"echo", "{loss}", "{loss}", "{epoch}"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}}}
	if got := strings.Join(Notes(spec), "\n"); got != "{loss} is left as it is; did you mean host?" {
		t.Errorf("the notes are:\n%s", got)
	}
	spec = &proto.JobSpec{Command: []string{"python", "-m", "train"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}, {Name: "tensorboard", Count: 1}}}
	if got := strings.Join(Notes(spec), "\n"); !strings.Contains(got, "--tensorboard-command 'tensorboard --logdir") {
		t.Errorf("of a TensorBoard that trains is noted: %q", got)
	}
	for _, own := range []bool{true, false} {
		spec.Command = []string{"sh", "-c", "exec ./{role}"}
		if spec.Roles[1].Command = nil; own {
			spec.Command, spec.Roles[1].Command = []string{"true"}, []string{"tensorboard"}
		}
		if got := Notes(spec); len(got) > 0 {
			t.Errorf("of a TensorBoard with a command of its own is noted: %q", got)
		}
	}
}
