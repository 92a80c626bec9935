package jobs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/container/proctree"
	"holdfast/test/asuser"
	"holdfast/test/bench"
	"holdfast/test/ports"
	"holdfast/test/pyenv"
)

//go:embed elastic.py
var elasticScript string

// quickTorchrun is torchelastic with the settings quick, by which it notices the loss of an
// agent, and goes on without it, as soon as is sensible.
const quickTorchrun = "torchrun, quickest settings"

const quick = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=2"

// Elastic compares what it costs four ranks of PyTorch to lose one, and to get one more,
// with torchelastic's own launcher on the same machine: two processes each, the agent and
// the rank, are killed; a rank joins by yarn-submit scale, and by another torchrun.
func (b *Jobs) Elastic(ctx context.Context) error {
	python, err := pyenv.Torch22.Make(ctx)
	if err != nil {
		return err
	}
	names := []string{"yarn-submit", "torchrun", quickTorchrun}
	lost, grown := map[string]bench.Series{}, map[string]bench.Series{}
	for range b.Pairs {
		for _, name := range names {
			l, g, err := b.elasticRun(ctx, python, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			lost[name], grown[name] = append(lost[name], l), append(grown[name], g)
		}
	}
	for _, m := range []struct {
		title string
		took  map[string]bench.Series
	}{
		{"PyTorch, 4 ranks on one machine: from the loss of one to the next step", lost},
		{"PyTorch, 3 ranks: from another one's being started to a step by 4", grown},
	} {
		b.Title(m.title)
		for _, name := range names {
			bench.Line(b.Out, name, m.took[name].Format(" s", 1))
			if name != names[0] {
				bench.Line(b.Out, "  ratio", bench.Ratios(m.took[names[0]], m.took[name]).Format("", 2))
			}
		}
		fmt.Fprintln(b.Out)
	}
	return nil
}

// ranks are four ranks that one of the contestants runs.
type ranks interface {
	kill(ctx context.Context) error   // one of them, with what started it
	remove(ctx context.Context) error // so that three are left, if that is not so after kill
	add(ctx context.Context) error    // one
	stop(ctx context.Context) error
}

// elasticRun has one contestant's ranks lose one of four, and get another.
func (b *Jobs) elasticRun(ctx context.Context, python, name string) (lost, grown float64, err error) {
	dir, err := os.MkdirTemp(b.Dir, "ranks-")
	if err != nil {
		return 0, 0, err
	}
	script := filepath.Join(dir, "elastic.py")
	if err := os.WriteFile(script, []byte(elasticScript), 0o644); err != nil {
		return 0, 0, err
	}
	marks := filepath.Join(dir, "marks")
	start := b.startRanks
	if name != "yarn-submit" {
		start = func(ctx context.Context, python, dir, marks string) (ranks, error) {
			settings := ""
			if name == quickTorchrun {
				settings = quick
			}
			return startTorchrun(ctx, python, dir, marks, settings)
		}
	}
	r, err := start(ctx, python, dir, marks)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if text, missing := os.ReadFile(filepath.Join(dir, "torchrun.log")); err != nil && missing == nil {
			err = fmt.Errorf("%w; the end of what torchrun wrote:\n%s", err, text[max(0, len(text)-2000):])
		}
		err = errors.Join(err, r.stop(context.WithoutCancel(ctx)))
	}()
	if _, err := stepMarked(ctx, marks, time.Time{}, 4); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err := r.kill(ctx); err != nil {
		return 0, 0, err
	}
	at, err := stepMarked(ctx, marks, begun, 0)
	if err != nil {
		return 0, 0, err
	}
	lost = at.Sub(begun).Seconds()
	if err := r.remove(ctx); err != nil {
		return 0, 0, err
	}
	if _, err := stepMarked(ctx, marks, begun, 3); err != nil {
		return 0, 0, err
	}
	begun = time.Now()
	if err := r.add(ctx); err != nil {
		return 0, 0, err
	}
	if at, err = stepMarked(ctx, marks, begun, 4); err != nil {
		return 0, 0, err
	}
	return lost, at.Sub(begun).Seconds(), nil
}

// stepMarked waits for the first step that was made by so many ranks, of which the first
// began after a time, and returns when that was. 0 stands for any number.
func stepMarked(ctx context.Context, marks string, after time.Time, world int) (at time.Time, err error) {
	err = poll(ctx, 3*time.Minute, fmt.Sprintf("a step by %d ranks", world), func() (bool, error) {
		text, err := os.ReadFile(marks)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		for l := range strings.Lines(string(text)) {
			var made, began float64
			var n int
			if _, err := fmt.Sscanf(l, "%f %d %f\n", &made, &n, &began); err != nil {
				return false, nil // it is being written
			}
			if (world == 0 || n == world) && began*1000 > float64(after.UnixMilli()) {
				at = time.UnixMilli(int64(made * 1000))
				return true, nil
			}
		}
		return false, err
	})
	return at, err
}

// ourRanks is a job on this machine.
type ourRanks struct {
	user asuser.Caller
	job  string
}

func (b *Jobs) startRanks(ctx context.Context, python, dir, marks string) (ranks, error) {
	r := &ourRanks{user: asuser.Caller{Submit: b.Submit, Home: filepath.Join(dir, "home"), Dir: dir}}
	var err error
	r.job, err = r.user.Run(ctx, "--local", "--framework", "pytorch", "--worker", "3..4", "--env", "MARKS="+marks, "--files", "elastic.py",
		"--checkpoint", "./logs="+filepath.Join(dir, "store"), "--", python, "elastic.py")
	return r, err
}

func (r *ourRanks) kill(ctx context.Context) error {
	s, err := r.user.Status(ctx, r.job)
	if err != nil {
		return err
	}
	return syscall.Kill(int(s.Tasks[3].AgentPid), syscall.SIGKILL) // its task's process ends with it
}

func (r *ourRanks) scale(ctx context.Context, n int) error {
	_, err := r.user.Call(ctx, "scale", r.job, fmt.Sprintf("worker=%d", n))
	return err
}

func (r *ourRanks) remove(ctx context.Context) error { return r.scale(ctx, 3) }

func (r *ourRanks) add(ctx context.Context) error { return r.scale(ctx, 4) }

func (r *ourRanks) stop(ctx context.Context) error {
	_, err := r.user.Call(ctx, "kill", r.job)
	return err
}

// torchruns are as many launchers of torchelastic as there are ranks. The first of them is
// told to serve the store of all; where none is told, whichever is first to listen does.
type torchruns struct {
	ports   *ports.Block // the first one's
	command func(ctx context.Context, serves bool) *exec.Cmd
	started []*exec.Cmd
}

func startTorchrun(ctx context.Context, python, dir, marks, settings string) (ranks, error) {
	block, err := ports.Claim(1)
	if err != nil {
		return nil, err
	}
	endpoint := block.Addr("127.0.0.1", 0)
	r := &torchruns{ports: block, command: func(ctx context.Context, serves bool) *exec.Cmd {
		conf := fmt.Sprintf("is_host=%t", serves)
		if settings != "" {
			conf += "," + settings
		}
		cmd := exec.CommandContext(ctx, python, "-m", "torch.distributed.run", "--nnodes=3:4", "--nproc_per_node=1", "--max_restarts=100",
			"--rdzv_backend=c10d", "--rdzv_endpoint="+endpoint, "--rdzv_id=bench", "--rdzv_conf="+conf, "elastic.py")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "MARKS="+marks)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}}
	for range 4 {
		if err := r.add(ctx); err != nil {
			return nil, errors.Join(err, r.stop(ctx))
		}
	}
	return r, nil
}

func (r *torchruns) add(ctx context.Context) error {
	cmd := r.command(ctx, len(r.started) == 0)
	output, err := os.OpenFile(filepath.Join(cmd.Dir, "torchrun.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = output, output
	if err := errors.Join(cmd.Start(), output.Close()); err != nil {
		return err
	}
	r.started = append(r.started, cmd)
	return nil
}

// kill ends the last one, with its rank.
func (r *torchruns) kill(context.Context) error {
	last := r.started[len(r.started)-1]
	r.started = r.started[:len(r.started)-1]
	return endAll(last)
}

func (r *torchruns) remove(context.Context) error { return nil }

func (r *torchruns) stop(context.Context) error {
	var err error
	for _, cmd := range r.started {
		err = errors.Join(err, endAll(cmd))
	}
	return errors.Join(err, r.ports.Close())
}

// endAll kills a process and its descendants, as the loss of their host does, and waits
// for it.
func endAll(cmd *exec.Cmd) error {
	var err error
	for _, pid := range append(proctree.Descendants(cmd.Process.Pid), cmd.Process.Pid) {
		if kill := syscall.Kill(pid, syscall.SIGKILL); kill != nil && !errors.Is(kill, syscall.ESRCH) {
			err = errors.Join(err, kill)
		}
	}
	_ = cmd.Wait() // it was killed
	return err
}
