package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/client/submit"
	"holdfast/cmd/yarn-submit/ckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/writers"
)

// TestTheUsersCheckpointFile: a program's own file or directory called
// `checkpoint` is there at the job's end, and costs no time.
func TestTheUsersCheckpointFile(t *testing.T) {
	p := newPlace(t)
	begin := time.Now()
	for _, x := range []struct{ dir, script string }{
		{"file", "echo hello > out/checkpoint"},
		{"directory", "mkdir out/checkpoint && echo hello > out/checkpoint/a"},
	} {
		for range 2 { // the second finds it at its start
			if out, errs, code := p.call("run", "--local", "--worker", "1", "--framework", "pytorch", "--checkpoint", "./out="+x.dir, "--", "sh", "-c", "rm -r out/*; "+x.script); code != 0 {
				t.Fatalf("run ended with %d: %s%s", code, out, errs)
			}
		}
	}
	for _, name := range []string{"file/checkpoint", "directory/checkpoint/a"} {
		if b, err := os.ReadFile(filepath.Join(p.dir, name)); err != nil || string(b) != "hello\n" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if took := time.Since(begin); took > 25*time.Second { // a start waits for 2 minutes, an end for 30 seconds, where it cannot look
		t.Errorf("four jobs took %v", took)
	}
}

// TestTheUsersDirectoryStays: a job that writes nothing leaves the user's directory as it was, but
// for what it makes of its own the first time.
func TestTheUsersDirectoryStays(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "mine")
	for name, text := range map[string]string{
		"checkpoint": "hello\n", "step-1/a": "x", "step-2": "a file", ".x": "hidden", ".hidden/b": "y", "out.tmp": "z",
		"sub/checkpoint": "model_checkpoint_path: a", "sub/model-3.pt": "not one",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	for _, name := range []string{"empty", "step-4", "sub/deep/empty"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "step-2", "sub/nowhere": "../gone"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSymlink == 0 {
			names = append(names, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		at := time.Now().Add(-time.Duration(i+1) * 24 * time.Hour)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	before := everythingIn(t, dir)
	for _, run := range []string{"first", "second"} {
		if out, errs, code := p.call("run", "--local", "--worker", "1", "--framework", "pytorch", "--checkpoint", "./out="+dir, "--", "true"); code != 0 {
			t.Fatalf("run ended with %d: %s%s", code, out, errs)
		}
		after := everythingIn(t, dir)
		if run == "first" { // it makes .holdfast
			before["."] = after["."]
		}
		for name := range before {
			if after[name] != before[name] {
				t.Errorf("after the %s run %s is %q, and was %q", run, name, after[name], before[name])
			}
		}
		for name, is := range after {
			if before[name] == "" {
				t.Errorf("after the %s run there is %s: %q", run, name, is)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".holdfast")); err != nil {
		t.Error(err)
	}
}

// everythingIn says of each entry in a directory, but for .holdfast, what it is, its mode and time
// and what it holds.
func everythingIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".holdfast" {
			return filepath.SkipDir
		}
		i, err := e.Info()
		if err != nil {
			return err
		}
		holds := ""
		switch {
		case i.Mode().IsRegular():
			text, readErr := os.ReadFile(name)
			holds, err = string(text), readErr
		case i.Mode()&fs.ModeSymlink != 0:
			holds, err = os.Readlink(name)
		}
		relative, _ := filepath.Rel(dir, name)
		all[relative] = fmt.Sprintf("%v %v %s", i.Mode(), i.ModTime().UTC(), holds)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// saver saves as Hugging Face's Trainer does, goes on from the highest number, and
// is stopped once in the middle of the save of step $3: by itself ($2 is kill) or by
// the test.
const saver = `
last=$(ls out | sed -n 's/^checkpoint-//p' | sort -n | tail -1)
if [ -n "$last" ]; then cat out/checkpoint-$last/trainer_state.json || exit 1; fi
step=${last:-0}
while [ $step -lt 30 ]; do
	step=$((step + 10)); d=out/checkpoint-$step
	mkdir $d && echo {} > $d/config.json && cp model $d/pytorch_model.bin || exit 1
	if [ $step = $3 ] && [ ! -e $1 ]; then
		echo > $1
		if [ $2 = kill ]; then kill -9 $$; fi
		sleep 1000
	fi
	echo x > $d/training_args.bin
	echo '{"global_step": '$step'}' > $d/trainer_state.json
done`

// TestTornAndLost: a job that is broken off in the middle of a save goes on from
// the one before, whether its master sees that, or is lost with it and the job is
// started anew; and while it lives, no other one may write to its directory.
//
// That of the first save is known to be torn though nothing but its model is there.
func TestTornAndLost(t *testing.T) {
	for _, x := range []struct {
		rule string
		step int
	}{{"", 20}, {",format=plain,marker=trainer_state.json", 20}, {"", 10}} {
		for _, how := range []string{"kill", "silently"} {
			t.Run(fmt.Sprintf("%s%s, %d", how, x.rule, x.step), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				copyFixtures(t, p.dir, map[string]string{"torchfile/testdata/alone.pt": "model"})
				write(t, filepath.Join(p.dir, "saver.sh"), saver)
				torn := filepath.Join(p.dir, "torn")
				args := []string{"--worker", "1", "--framework", "pytorch", "--restarts", "1", "--files", "saver.sh", "--files", "model", "--checkpoint", "./out=ck" + x.rule}
				program := []string{"--", "sh", "saver.sh", torn, how, strconv.Itoa(x.step)}
				if how == "silently" {
					job := p.detached(append(args, program...)...)
					for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
						if _, err := os.Stat(torn); err == nil {
							break
						} else if time.Now().After(deadline) {
							t.Fatal("the job does not come to its second save")
						}
					}
					out, errs, code := p.call(append([]string{"run", "--local"}, append(args, program...)...)...)
					if code != client.ExitUsage {
						t.Errorf("a second job on its directory ended with %d: %s", code, out)
					}
					contains(t, errs, job, "share=true")
					pid, err := os.ReadFile(filepath.Join(p.home, "jobs", job, "am.pid"))
					if err != nil {
						t.Fatal(err)
					}
					master, err := strconv.Atoi(strings.Fields(string(pid))[0])
					if err == nil {
						err = syscall.Kill(master, syscall.SIGKILL)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				out, errs, code := p.call(append([]string{"run", "--local"}, append(args, program...)...)...)
				if code != 0 {
					t.Fatalf("run ended with %d: %s%s", code, out, errs)
				}
				name := fmt.Sprintf("checkpoint-%d", x.step)
				contains(t, out, "moved "+name+" aside", ".holdfast/aside/")
				list := listJSON(t, p, "./ck", "--all")
				if len(list) != 4 || !list[2].Newest || list[3].Name != name || list[3].Aside == "" || list[3].State != string(format.Torn) {
					t.Errorf("ls: %+v", list)
				} else if _, err := os.Stat(filepath.Join(p.dir, "ck", list[3].Aside, "pytorch_model.bin")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestNotUnderstood: where there are files, "no checkpoint yet" would be wrong.
func TestNotUnderstood(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "ck/40/d/data"), "x")
	out, _, code := p.call("ckpt", "ls", "./ck")
	if code != 0 {
		t.Errorf("ls ended with %d", code)
	}
	contains(t, out, "40/", "format=plain", "marker=FILE")
	for _, name := range []string{"config.json", "weights.pt", "optimizer.pt"} {
		write(t, filepath.Join(p.dir, "ck/step_300", name), "x")
	}
	var done ckpt.Got
	callJSON(t, p, &done, "ckpt", "get", "./ck", "300", "to")
	if done.Copied != 3 {
		t.Errorf("get copied %d files", done.Copied)
	}
	out, _, _ = p.call("ckpt", "prune", "./ck", "--keep", "1", "--yes")
	contains(t, out, "step_300  cannot be checked")
	if _, errs, code := p.call("ckpt", "rollback", "./ck", "300", "--yes"); code != client.ExitUsage || !strings.Contains(errs, "step_300") {
		t.Errorf("rollback ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("ckpt", "rollback", "./ck", "300", "--dir", "foo"); code != client.ExitUsage || !strings.Contains(errs, "no checkpoint of step 300; there are no complete checkpoints below foo") {
		t.Errorf("rollback of a directory without checkpoints ended with %d: %s", code, errs)
	}
}

// TestOldJobsGo: directories of jobs in which nothing has changed for long are
// removed when another job starts, and that is said; others stay.
func TestOldJobsGo(t *testing.T) {
	p := newPlace(t)
	age := func(id string, days int) {
		t.Helper()
		dir := filepath.Join(p.home, "jobs", id)
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		for _, name := range []string{"logs", "status.json", "am.json", ""} {
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, days := range map[string]int{"local-old": 100, "local-young": 80, "local-alive": 100, "local-unknown": 100} {
		for _, name := range []string{"logs/worker-0/0.log", "status.json", "am.json"} {
			write(t, filepath.Join(p.home, "jobs", id, name), endedState)
		}
		age(id, days)
	}
	write(t, filepath.Join(p.home, "jobs/local-unknown/status.json"), "{}")
	age("local-unknown", 100)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(p.home, "jobs/local-alive/am.json"), now, now); err != nil {
		t.Fatal(err)
	}
	run := func() string {
		t.Helper()
		_, errs, code := p.call("run", "--local", "--worker", "1", "--", "true")
		if code != 0 {
			t.Fatalf("run ended with %d: %s", code, errs)
		}
		return errs
	}
	contains(t, run(), "removed the directories of 1 jobs", submit.EnvKeepJobs)
	for id, want := range map[string]bool{"local-old": false, "local-young": true, "local-alive": true, "local-unknown": true} {
		if _, err := os.Stat(filepath.Join(p.home, "jobs", id)); (err == nil) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
	t.Setenv(submit.EnvKeepJobs, "0")
	age("local-young", 1000)
	if errs := run(); strings.Contains(errs, "removed") {
		t.Error(errs)
	}
	t.Setenv(submit.EnvKeepJobs, "soon")
	if _, errs, code := p.call("run", "--local", "--worker", "1", "--", "true"); code != client.ExitUsage || !strings.Contains(errs, submit.EnvKeepJobs) {
		t.Errorf("run ended with %d: %s", code, errs)
	}
}

// TestWhatAScriptRemovesStays: of a script that keeps its newest checkpoint only, the
// one before can still be read; so can what a file had that was saved over.
func TestWhatAScriptRemovesStays(t *testing.T) {
	p := newPlace(t)
	copyFixtures(t, p.dir, map[string]string{"torchfile/testdata/alone.pt": "model"})
	out, errs, code := p.call("run", "--local", "--worker", "1", "--framework", "pytorch", "--files", "model", "--checkpoint", "./out=ck", "--", "sh", "-c", `
for step in 10 20 30; do
	d=out/checkpoint-$step
	mkdir $d && cp model $d/pytorch_model.bin && cp model $d/training_args.bin && echo '{"global_step": '$step'}' > $d/trainer_state.json || exit 1
	rm -rf out/checkpoint-$((step - 10))
	cp model out/last.pt.tmp && mv out/last.pt.tmp out/last.pt || exit 1
done`)
	if code != 0 {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	list := listJSON(t, p, "./ck")
	var names []string
	for _, c := range list {
		name := c.Name
		if c.Retained {
			name += " retained"
		}
		if !c.Complete {
			name += " " + c.State
		}
		names = append(names, name)
	}
	if got, want := strings.Join(names, ", "), "last.pt, checkpoint-30, last.pt retained, checkpoint-20 retained"; got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
}

// TestRollbackSaysWhatItMoves: the plan names what is moved, how much that is, where to, and how
// to have it back; nothing is moved before somebody agrees; and ls says what was moved and why.
func TestRollbackSaysWhatItMoves(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": "step-10.ckpt"})
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": "step-20.ckpt"})
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": "step-30.ckpt"})
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": "last.ckpt"})
	out, errs, code := p.call("ckpt", "rollback", "./ck", "10")
	if code != client.ExitUsage || !strings.Contains(errs, "--yes") {
		t.Errorf("rollback without a terminal ended with %d: %s", code, errs)
	}
	contains(t, out, "goes on from step-10.ckpt; 3 newer checkpoints, which would be used instead, are moved aside, ", "KiB", ".holdfast/aside", "30 days",
		"moves  20  complete", "step-20.ckpt", "moves  -  complete", "copies step-10.ckpt to last.ckpt", "yarn-submit ckpt rollback "+dir+" 30\n", "nothing was changed")
	if list := listJSON(t, p, "./ck"); len(list) != 4 {
		t.Fatalf("nobody has agreed, and there are %+v", list)
	}
	if out, errs, code = p.call("ckpt", "rollback", "./ck", "10", "--yes"); code != 0 {
		t.Fatalf("rollback ended with %d: %s%s", code, out, errs)
	}
	out, _, _ = p.call("ckpt", "ls", "./ck")
	contains(t, out, "step-10.ckpt", "3 more were moved aside by a rollback")
	out, _, _ = p.call("ckpt", "ls", "./ck", "--all", "--wide")
	contains(t, out, "step-30.ckpt", "rolled back to 10 by ", " UTC")
	var all inspect.Listing
	callJSON(t, p, &all, "ckpt", "ls", "./ck", "--all")
	aside := 0
	for _, c := range all.Checkpoints {
		if c.Aside != "" {
			aside++
			if c.State != "complete" || !c.Complete || c.RolledBack != (c.Step != nil) || c.FileCount != 1 || !strings.HasPrefix(c.Why, "rolled back to 10 by ") {
				t.Errorf("aside is %+v", c)
			}
		}
	}
	if aside != 3 {
		t.Errorf("%d are aside: %+v", aside, all)
	}
	if out, errs, code = p.call("ckpt", "rollback", "./ck", "10"); code != 0 || !strings.Contains(out, "none is newer") {
		t.Errorf("with nothing to do rollback ended with %d: %s%s", code, out, errs)
	}
	var plan inspect.Rollback
	callJSON(t, p, &plan, "ckpt", "rollback", "./ck", "30", "--yes")
	if !plan.Done || len(plan.Restored) != 2 || len(plan.Copied) != 1 || plan.To.Name != "step-30.ckpt" || len(plan.Newer) != 0 {
		t.Errorf("forward again: %+v", plan)
	}
	if list := listJSON(t, p, "./ck"); len(list) != 4 {
		t.Errorf("forward again, there are %+v", list)
	}
}

// TestWhatLatestNames: what a script removes of DeepSpeed's is retained, and comes back if it is
// what the next job goes on from; where that is lost otherwise, the job says so.
func TestWhatLatestNames(t *testing.T) {
	p := newPlace(t)
	copyFixtures(t, p.dir, map[string]string{"torchfile/testdata/alone.pt": "model"})
	run := func(script string, told ...string) {
		t.Helper()
		out, errs, code := p.call("run", "--local", "--worker", "1", "--framework", "pytorch", "--files", "model", "--checkpoint", "./out=ck", "--", "sh", "-ec", script)
		if code != 0 {
			t.Fatalf("run ended with %d: %s%s", code, out, errs)
		}
		contains(t, out, told...)
	}
	listed := func(want string) {
		t.Helper()
		var names []string
		for _, c := range listJSON(t, p, "./ck") {
			name := c.Name
			if c.Retained {
				name += " retained"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("there are %s, want %s", got, want)
		}
	}
	run(`for step in 10 20; do
		d=out/global_step$step
		mkdir $d
		cp model $d/mp_rank_00_model_states.pt
		cp model $d/zero_pp_rank_0_mp_rank_00_optim_states.pt
		printf global_step$step > out/latest
	done
	rm -r out/global_step10`)
	listed("global_step20, global_step10 retained")
	run("rm -r out/global_step20")
	listed("global_step20 retained")
	run("cp out/global_step20/mp_rank_00_model_states.pt copy", "restored global_step20")
	listed("global_step20")
	if err := os.Remove(filepath.Join(p.dir, "ck/global_step20/mp_rank_00_model_states.pt")); err != nil {
		t.Fatal(err)
	}
	run("true", "latest names global_step20, which is not whole: mp_rank_00_model_states.pt is missing", "remove latest")
}

// TestAWaitIsTold: that another job may still write to the checkpoint directory is
// told before it is waited for, and not among what programs read.
func TestAWaitIsTold(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		p := newPlace(t)
		lost := filepath.Join(p.dir, "ck", writers.Dir("local-20260101-000000-lost"))
		if err := os.MkdirAll(lost, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := p.command("run", "--local", "--output", format, "--worker", "1", "--checkpoint", "./out=ck", "--", "true")
		var out bytes.Buffer
		cmd.Stdout = &out
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(errs).ReadString('\n')
		if took := time.Since(began); err != nil || took > writers.LostAfter/2 {
			t.Errorf("after %s it says %q, %v", took, line, err)
		}
		contains(t, line, "note: local-20260101-000000-lost ", filepath.Join(p.dir, "ck"), "until ")
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != client.ExitInterrupted || out.Len() > 0 {
			t.Errorf("interrupted meanwhile, it ended with %d: %s", code, &out)
		}
	}
}
