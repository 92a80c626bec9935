package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Outcome is what came of a round.
type Outcome struct {
	Round  Round
	What   []string // was lost
	Step   int64    // the highest that was made before the first fault
	Sealed int64    // of the newest complete checkpoint then
	// Chief is how long after the first fault the chief made steps again, in a new
	// session or after its longest pause, and All every worker; 0 if it always did.
	Chief, All time.Duration
	Pause      time.Duration // the chief's longest
	Resumed    int64         // the lowest step at which a session began anew; -1 if none did
	Again      int64         // steps that had to be made again
	Wrong      []string

	at      time.Time
	charged int32     // failures of all tasks before
	free    bool      // there must be no more after
	apart   bool      // no task may be lost
	masters int       // that were to be lost
	open    bool      // or any number
	gone    []process // that had to end
}

func (o Outcome) String() string {
	text := fmt.Sprintf("chief back after %.1f s, with a pause of %.1f s, all after %.1f s", o.Chief.Seconds(), o.Pause.Seconds(), o.All.Seconds())
	if o.Resumed >= 0 {
		text += fmt.Sprintf(", from step %d (%d made again)", o.Resumed, o.Again)
	}
	if len(o.Wrong) > 0 {
		text += "; WRONG: " + strings.Join(o.Wrong, "; ")
	}
	return text
}

// saving is for how long steps go on at most while a checkpoint is saved, which
// is lost if it is not complete.
const saving = 5 * time.Second

// judge says what was wrong after a round: nothing that was complete is lost, no
// more steps are lost than were made since, none while the parameter servers run on,
// and no master is lost but those struck.
func (j *job) judge(ctx context.Context, o *Outcome, before, after *proto.JobStatus) {
	o.Chief = j.watch.again(chief, o.at)
	o.Pause = j.watch.longest(chief, o.at, time.Now()).length()
	for i := range workers {
		o.All = max(o.All, j.watch.again(fmt.Sprintf("worker-%d", i), o.at))
	}
	o.Resumed, o.Again = j.watch.begun(o.at, o.Step)
	if o.Resumed >= 0 && o.Resumed < o.Sealed {
		o.wrong("it went on from step %d, and the checkpoint of step %d was complete", o.Resumed, o.Sealed)
	}
	// Until the chief is back, nothing is saved: it is away, or waits for what is silent.
	if most := int64(saveSteps + (saving+o.Chief).Seconds()*stepsPerSecond); o.Again > most {
		o.wrong("%d steps were made again, with a checkpoint every %d", o.Again, saveSteps)
	}
	if lost := startedAnew(before, after, ""); o.apart && len(lost) > 0 {
		o.wrong("%s were lost, which need nothing of what was struck", strings.Join(lost, ", "))
	}
	if o.Again > 0 && len(startedAnew(before, after, "ps")) == 0 {
		o.wrong("%d steps were made again, and no parameter server was lost", o.Again)
	}
	if anew := startedAnew(before, after, "worker"); o.Resumed < 0 && len(anew) > 0 {
		o.wrong("%s were started anew, and from which step is not known: none told that it began", strings.Join(anew, ", "))
	}
	j.lost += o.masters
	if n, err := j.masters(ctx); err != nil {
		o.wrong("the application masters cannot be counted: %v", err)
	} else {
		if n != 1+j.lost && !o.open {
			o.wrong("the job is at its application master %d, and %d were lost", n, j.lost)
		}
		j.lost = n - 1 // said once
	}
	if both := j.watch.twice(o.at); len(both) > 0 {
		o.wrong("two processes of %s trained at the same time", strings.Join(both, ", "))
	}
	if n := failures(after); o.free && n > o.charged {
		o.wrong("tasks are charged with %d failures that were not theirs", n-o.charged)
	}
	if o.Resumed >= 0 && len(after.Incidents) == 0 {
		o.wrong("the job tells of no incident")
	}
}

// startedAnew are the tasks of a role, or of all, that are at another attempt.
func startedAnew(before, after *proto.JobStatus, role string) (names []string) {
	attempts := map[string]int32{}
	for _, t := range before.Tasks {
		attempts[t.Task] = t.Attempt
	}
	for _, t := range after.Tasks {
		if (role == "" || t.Role == role) && t.Attempt != attempts[t.Task] {
			names = append(names, t.Task)
		}
	}
	return names
}

func (o *Outcome) wrong(format string, args ...any) {
	o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...))
}

func failures(s *proto.JobStatus) (n int32) {
	for _, t := range s.Tasks {
		n += t.Failures
	}
	return n
}

// masters counts the attempts of the application.
func (j *job) masters(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+j.Cluster.RMWeb()+"/ws/v1/cluster/apps/"+j.id+"/appattempts", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	var answer struct {
		AppAttempts struct{ AppAttempt []json.RawMessage }
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return len(answer.AppAttempts.AppAttempt), err
}

// judgeEnd says what was wrong at the job's end: it must have made its last
// step and saved it, and leave nothing behind.
func (j *job) judgeEnd(ctx context.Context, s *proto.JobStatus) (faults []string) {
	wrong := func(format string, args ...any) {
		text := j.id + ": " + fmt.Sprintf(format, args...)
		j.Log("WRONG: %s", text)
		faults = append(faults, text)
	}
	if s.State != proto.JobState_JOB_STATE_SUCCEEDED {
		wrong("it ended as %s: %s", s.State, s.Why)
	}
	if out, err := j.user().Call(ctx, "logs", j.id, chief); err != nil || !strings.Contains(string(out), fmt.Sprintf("final step %d", j.steps)) {
		wrong("the chief did not say that it reached step %d (%v)", j.steps, err)
	}
	var listed struct {
		Checkpoints []struct {
			Step     int64
			Complete bool
			State    string
		}
	}
	out, err := j.user().Call(ctx, "ckpt", "ls", j.store, "--output", "json")
	if err == nil {
		err = json.Unmarshal(out, &listed)
	}
	if err != nil {
		wrong("its checkpoints cannot be listed: %v", err)
	}
	list := listed.Checkpoints
	oldest, newest := int64(math.MaxInt64), int64(-1)
	for _, c := range list {
		if c.Complete {
			oldest, newest = min(oldest, c.Step), max(newest, c.Step)
		}
	}
	for _, c := range list {
		// An older one is what a chief that was lost has not removed whole.
		if !c.Complete && c.Step > oldest {
			wrong("the checkpoint of step %d is %s", c.Step, c.State)
		}
	}
	if newest < int64(j.steps) {
		wrong("its newest checkpoint is of step %d, not %d", newest, j.steps)
	}
	for _, left := range j.left(ctx) {
		wrong("it left behind %s", left)
	}
	j.Log("%s ended as %s with a checkpoint of step %d", j.id, s.State, newest)
	return faults
}

// left names what outlives the job: processes, mounts, unfinished files.
func (j *job) left(ctx context.Context) []string {
	var left []string
	for end := time.Now().Add(30 * time.Second); ; {
		left = nil
		all, err := j.containers()
		if err != nil {
			left = append(left, err.Error())
		}
		for _, c := range all {
			left = append(left, fmt.Sprintf("the container %s on %s with the processes %v", c.ID, c.Node, c.PIDs))
		}
		if len(left) == 0 || time.Now().After(end) || !wait(ctx, 100*time.Millisecond) {
			break
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), j.Cluster.Dir()) {
		left = append(left, fmt.Sprintf("a mount below %s (%v)", j.Cluster.Dir(), err))
	}
	files, err := j.Cluster.Hadoop(ctx, "fs", "-ls", "-R", j.store)
	if err != nil {
		left = append(left, err.Error())
	}
	for _, l := range strings.Split(files, "\n") {
		if strings.Contains(l, "/.holdfast/aside/") {
			continue // a save that was torn: moved there, and never removed
		}
		if store.IsTemporary(l) || strings.Contains(l, "_temp") || strings.Contains(l, ".tempstate") {
			left = append(left, "the file "+l)
		}
	}
	return left
}

// trace gives what the job and its tasks told since a moment to whoever wants it.
func (j *job) trace(since time.Time, s *proto.JobStatus) {
	if j.Trace == nil {
		return
	}
	for _, m := range s.Events {
		if at := time.UnixMilli(m.AtUnixMs); at.After(since) {
			j.Trace(fmt.Sprintf("%7.2f %-9s [%s] %s", at.Sub(since).Seconds(), m.Task, m.Kind, m.Text))
		}
	}
	for _, l := range j.watch.said(since) {
		j.Trace(l)
	}
}

// explain says what can be said of a job that does not go on.
func (j *job) explain(since time.Time) error {
	said := j.watch.said(since)
	text := strings.Join(said[max(0, len(said)-60):], "\n")
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	out, err := j.user().Call(ctx, "status", j.id)
	return fmt.Errorf("the job is (%v):\n%s\nand its tasks last said:\n%s", err, out, text)
}
