package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// tokenLife is how long tokens are good, renewed or not.
const tokenLife = 50 * time.Second

// shortTokens starts a cluster whose tokens end soon, and alice's tickets sooner.
func shortTokens(t *testing.T, more testcluster.Options) *testcluster.Cluster {
	t.Helper()
	more.Conf = map[string]string{
		"yarn.resourcemanager.am.max-attempts": "4",
		// So that a node that has not got the job's files yet can bring them: its
		// ResourceManager gets tokens for the job when those of the submission end.
		"yarn.resourcemanager.proxy-user-privileges.enabled":           "true",
		"yarn.resourcemanager.system-credentials.valid-time-remaining": "5000", // else those of the submission are given up at once
		"hadoop.proxyuser.rm.hosts":                                    "*",
		"hadoop.proxyuser.rm.users":                                    "*",
	}
	c := secure(t, testcluster.Security{RPC: "integrity", Data: "authentication", TokenLife: tokenLife}, more)
	if err := c.KDC().Admin(t.Context(), `modprinc -maxlife "15 seconds" `+kdc.Alice); err != nil {
		t.Fatal(err)
	}
	return c
}

// beyondTokens waits until a job has run for so long, and all its tasks run.
func (j *job) beyondTokens(d time.Duration) *proto.JobStatus {
	j.t.Helper()
	return j.until(long, "tokens to end", func(s *proto.JobStatus) bool {
		return running(s) && time.Since(time.UnixMilli(s.StartedUnixMs)) > d
	})
}

// keytabFlags are the flags of a job that may outlive its tokens.
func keytabFlags(c *testcluster.Cluster) []string {
	return []string{"--principal", kdc.Alice, "--keytab", c.KDC().Keytab(kdc.Alice)}
}

// TestTokensAreReplaced: a job with a keytab loses a container after the tokens of
// its submission have ended, and goes on.
func TestTokensAreReplaced(t *testing.T) {
	daemons.enter(t)
	c := shortTokens(t, testcluster.Options{})
	w := where{c}
	j := w.train(t, c.HDFS()+"/user/alice/replaced", untilFinish, keytabFlags(c)...)
	before := j.beyondTokens(tokenLife + tokenLife/8)
	j.killContainer("ps-1")
	j.whole("ps-1 to be back", before, "ps-1")
	j.goesOn()
	if log := j.allLogs(); strings.Contains(log, "InvalidToken") {
		t.Errorf("a token ended before it was replaced:\n%s", log)
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
}

// TestLongOutlivingTokens runs two jobs on a cluster whose tokens end soon. The one
// with a keytab goes on for three times as long, with tickets that end sooner
// still, and loses its application master, a container, a process, the active
// NameNode and the active ResourceManager on the way, each after the tokens of its
// submission have ended. The one without ends in order before its tokens do.
func TestLongOutlivingTokens(t *testing.T) {
	daemons.enter(t)
	const life = tokenLife
	c := shortTokens(t, testcluster.Options{Standby: true, ResourceManagers: 2})
	w := where{c}
	start := func(name string, steps int, more ...string) *job {
		store := c.HDFS() + "/user/alice/" + name
		j := w.start(t, "", ship(w, append(trainerArgs(store, steps, more...), "--step_time=50ms", "--save_steps=50"))...)
		j.store = store
		return j
	}
	// Two workers take 40 steps a second at most.
	steps := int(3 * life / (25 * time.Millisecond))
	with := start("with", steps, keytabFlags(c)...)
	without := start("without", untilFinish)

	t.Run("without a keytab", func(t *testing.T) {
		without.t = t
		s := without.end(long, proto.JobState_JOB_STATE_FAILED)
		for _, want := range []string{"maximum lifetime", "--keytab", "last checkpoint"} {
			if !strings.Contains(s.Why, want) {
				t.Errorf("why it ended: %q does not say %q", s.Why, want)
			}
		}
		if took := time.UnixMilli(s.EndedUnixMs).Sub(time.UnixMilli(s.StartedUnixMs)); took >= life {
			t.Errorf("it ended after %s, and its tokens after %s", took, life)
		}
		list, newest := without.checkpoints(), without.newestComplete()
		if !slices.ContainsFunc(list, func(c checkpoint) bool { return c.Step == newest && c.State == "sealed" }) {
			t.Errorf("the last checkpoint, of step %d, is not sealed: %+v", newest, list)
		}
		if log := without.allLogs(); strings.Contains(log, "InvalidToken") {
			t.Errorf("a token ended before the job did:\n%s", log)
		}
	})
	t.Run("with a keytab", func(t *testing.T) {
		with.t = t
		before := with.beyondTokens(life + life/4)
		masters := with.masters()
		if len(masters) != 1 {
			t.Fatalf("application masters: %v", masters)
		}
		if err := syscall.Kill(masters[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		with.until(long, "the next master", func(s *proto.JobStatus) bool {
			return strings.Contains(eventLog(s), "attempt 2 has taken over") && running(s)
		})
		s := with.status()
		for _, b := range before.Tasks {
			if now := task(s, b.Task); now.Pid != b.Pid {
				t.Errorf("%s ran as process %d, and now as %d", b.Task, b.Pid, now.Pid)
			}
		}
		for _, loss := range []struct {
			task string
			kill func(*job, string)
			at   time.Duration
		}{{"ps-1", (*job).killContainer, 0}, {"ps-0", (*job).killProcess, 2*life + life/4}} {
			with.beyondTokens(loss.at)
			restores := func() int { return strings.Count(with.logs("worker-0"), "restored step") }
			whole, before := with.newestComplete(), restores()
			loss.kill(with, loss.task)
			took := with.back(long, loss.task)
			with.until(long, "worker-0 to go on", func(s *proto.JobStatus) bool { return running(s) && restores() > before })
			t.Logf("%s was back after %s", loss.task, took)
			if restored := lastNumber(t, with.logs("worker-0"), `restored step (\d+)`); restored < whole {
				t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", restored, whole)
			}
		}
		with.beyondTokens(2*life + life/2)
		if err := c.Daemon("nn").Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Activate(t.Context(), "nn1"); err != nil {
			t.Fatal(err)
		}
		with.goesOn()
		file := fetchTokens(t, c) // of the one, for the other
		fetched := time.Now()
		must(t, c.Daemon("rm1").Kill())
		must(t, c.Activate(t.Context(), "rm2"))
		t.Logf("the other ResourceManager was active %s after tokens were fetched", time.Since(fetched))
		t.Run("by tokens alone", func(t *testing.T) { byTokens(t, c, file, with.store) })
		before = with.status()
		with.killContainer("worker-1")
		with.whole("worker-1 to be back", before, "worker-1")
		with.undisturbed(before, "worker-1")
		s = with.end(long+3*life, proto.JobState_JOB_STATE_SUCCEEDED)
		if took := time.UnixMilli(s.EndedUnixMs).Sub(time.UnixMilli(s.StartedUnixMs)); took < 3*life {
			t.Errorf("it took only %s", took)
		}
		if newest := with.newestComplete(); newest != int64(steps) {
			t.Errorf("the newest checkpoint is of step %d, want %d", newest, steps)
		}
		if log := with.allLogs(); strings.Contains(log, "InvalidToken") {
			t.Errorf("a token ended before it was replaced:\n%s", log)
		}
	})
}
