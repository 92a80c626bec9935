package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client/cluster"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Status returns the job's state from its application master or, if that does not
// answer, from the job's directory and the ResourceManager.
func (j *Job) Status(ctx context.Context) (*proto.JobStatus, error) {
	if m, err := j.dial(ctx); err == nil {
		defer m.close()
		calling, cancel := context.WithTimeout(ctx, cluster.Timeout/2)
		defer cancel()
		if s, err := m.Status(calling, &proto.StatusRequest{}); err == nil {
			j.setTrackingURL(ctx, s)
			return s, nil
		}
	}
	return j.storedStatus(ctx)
}

// Liveness is what is known of whether a job goes on.
type Liveness int

// Livenesses.
const (
	Unknown Liveness = iota
	Alive            // it runs, or is going to
	Ended
)

// YARNLiveness returns what the ResourceManager knows of an application. One that it does not know
// may be another cluster's. An error means that it does not answer.
func YARNLiveness(ctx context.Context, c *cluster.Cluster, app yarn.ApplicationID) (Liveness, error) {
	querying, cancel := context.WithTimeout(ctx, cluster.Timeout)
	defer cancel()
	r, err := c.RM.Report(querying, app)
	switch {
	case yarn.IsUnknownApplication(err):
		return Unknown, nil
	case err != nil:
		return Unknown, cluster.YARNError(err)
	case r.State.Done():
		return Ended, nil
	}
	return Alive, nil
}

// EndedLongAgo reports whether a job is known to have ended in whose directory nothing has changed
// for long. An error means that nobody could be asked.
func (j *Job) EndedLongAgo(ctx context.Context) (bool, error) {
	l := Unknown
	var err error
	if j.Local() {
		l = j.localLiveness()
	} else if l, err = YARNLiveness(ctx, j.cluster, j.app); err != nil {
		return false, err
	}
	if l != Unknown {
		return l == Ended, nil
	}
	if j.Local() { // another machine may sleep
		saved, err := j.readStatus(ctx)
		return err == nil && saved.State.Done(), nil
	}
	// The ResourceManager forgets what has ended; and an application master that runs touches a file
	// there all the time. One that has written nothing may have yet to begin, on another cluster.
	_, err = j.home.Stat(ctx, path.Join(j.dir, proto.StatusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// storedStatus returns the job's state without calling the application master.
func (j *Job) storedStatus(ctx context.Context) (*proto.JobStatus, error) {
	if j.history {
		return j.keptStatus(ctx)
	}
	var report *yarn.Report
	alive := Unknown
	if j.Local() {
		// Checked before the file is read: a master writes its final state and then
		// ends.
		alive = j.localLiveness()
	} else {
		querying, cancel := context.WithTimeout(ctx, cluster.Timeout)
		defer cancel()
		r, err := j.cluster.RM.Report(querying, j.app)
		switch {
		case err == nil:
			report = &r
		case !yarn.IsUnknownApplication(err):
			return nil, cluster.YARNError(err)
		}
	}
	saved, err := j.readStatus(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), report != nil && j.denied():
		saved = nil
	case err != nil:
		return nil, err
	}
	if saved == nil {
		saved = &proto.JobStatus{Id: j.ID, State: proto.JobState_JOB_STATE_WAITING}
		spec, err := j.Spec(ctx)
		switch {
		case err == nil:
			saved.Name, saved.User, saved.Framework, saved.Checkpoints = spec.Name, spec.User, spec.Framework, spec.Checkpoints
		case report == nil:
			return nil, fmt.Errorf("there is no job %s: %w", j.ID, err)
		}
	}
	if j.Local() {
		reconcileLocal(saved, alive, j.Elsewhere(), path.Join(j.LocalPath(), MasterLog))
	} else {
		age := j.age(report)
		reconcileYARN(saved, report, j.ID, age)
		if j.denied() && !saved.State.Done() && yarn.Waiting(*report, age) == "" {
			saved.State, saved.Why = proto.JobState_JOB_STATE_RUNNING, "it is "+report.User+"'s; only its user is told of its tasks here"
		}
	}
	return saved, nil
}

// readStatus reads the state that the application master has stored.
func (j *Job) readStatus(ctx context.Context) (*proto.JobStatus, error) {
	text, err := j.read(ctx, proto.StatusFile)
	if err != nil {
		return nil, fmt.Errorf("read the state of %s: %w", j.ID, err)
	}
	s := &proto.JobStatus{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read the state of %s in %s: %w", j.ID, j.URI(), err)
	}
	return s, nil
}

// reconcileLocal corrects a stored state by whether the application master runs. elsewhere is the
// machine that it runs on if that is another one, of which nothing is known.
func reconcileLocal(s *proto.JobStatus, alive Liveness, elsewhere, log string) {
	switch {
	case s.State.Done():
	case alive == Alive:
		if len(s.Tasks) == 0 {
			s.Why = "the application master is starting"
		}
	case alive == Unknown && elsewhere != "":
		s.Why = "it runs on the machine " + elsewhere + ", or was lost with it; this is the state that was saved last"
	default:
		finalize(s, proto.JobState_JOB_STATE_FAILED, "its application master ended without finishing the job (it was killed, or could not start); its log is "+log)
	}
}

// age returns the time since the submission: by this process's clock if it submitted
// the job, otherwise by the ResourceManager's, which may differ.
func (j *Job) age(r *yarn.Report) time.Duration {
	if r == nil || !j.submitted.IsZero() {
		return time.Since(j.submitted)
	}
	return time.Since(r.Started)
}

// reconcileYARN corrects the stored state of a job, submitted age ago, by the
// ResourceManager's report; nil means that the ResourceManager does not know the job.
func reconcileYARN(s *proto.JobStatus, r *yarn.Report, id string, age time.Duration) {
	if r == nil {
		if !s.State.Done() {
			why := "the ResourceManager does not know the job any longer, so it is over; this is the state that was saved last"
			if s.State == proto.JobState_JOB_STATE_STOPPING && s.Why != "" {
				why = s.Why // its master did not come to its end
			}
			finalize(s, proto.JobState_JOB_STATE_FAILED, why)
		}
		return
	}
	s.Id, s.Queue = id, cmp.Or(s.Queue, r.Queue)
	if s.Name == "" {
		s.Name, s.User = r.Name, r.User
	}
	if r.TrackingURL != "" {
		s.TrackingUrl = r.TrackingURL
	}
	if s.StartedUnixMs == 0 && !r.Started.IsZero() {
		s.StartedUnixMs = r.Started.UnixMilli()
	}
	if s.State.Done() {
		return
	}
	if !r.State.Done() {
		if why := yarn.Waiting(*r, age); why != "" {
			s.State, s.Why = proto.JobState_JOB_STATE_WAITING, why
		} else if len(s.Tasks) == 0 {
			s.Why = "the application master is starting"
		}
		return
	}
	state := proto.JobState_JOB_STATE_FAILED
	switch {
	case r.State == yarn.StateKilled || r.Final == yarn.FinalKilled:
		state = proto.JobState_JOB_STATE_KILLED
	case r.Final == yarn.FinalSucceeded:
		state = proto.JobState_JOB_STATE_SUCCEEDED
	}
	why := MasterFailure(r.Diagnostics)
	if why == "" && state != proto.JobState_JOB_STATE_SUCCEEDED {
		why = "YARN gave no reason"
	}
	finalize(s, state, why)
	if !r.Finished.IsZero() {
		s.EndedUnixMs = r.Finished.UnixMilli()
	}
}

// finalize makes a state final whose application master could not do it.
func finalize(s *proto.JobStatus, state proto.JobState, why string) {
	s.State, s.Why = state, why
	for _, t := range s.Tasks {
		if !t.State.Done() {
			t.State, t.Pid = proto.TaskState_TASK_STATE_STOPPED, 0
		}
	}
	if s.EndedUnixMs == 0 && len(s.Events) > 0 {
		s.EndedUnixMs = s.Events[len(s.Events)-1].AtUnixMs
	}
}

// MasterFailure summarizes YARN's diagnostics of an application whose master did not
// finish it (RMAppImpl, RMAppAttemptImpl.getAMContainerCrashedDiagnostics,
// ContainerLaunch.diagnoseAppMasterFailure): the exit code, and the last output of the
// process, of up to five lines; or what YARN says of the reason, in one line.
func MasterFailure(diagnostics string) string {
	d := strings.TrimSpace(diagnostics)
	if i := strings.LastIndex(d, "For more detailed output"); i >= 0 {
		d = d[:i]
	}
	d = strings.TrimSuffix(strings.TrimSpace(d), ". Failing the application.")
	switch {
	case strings.Contains(d, "AM Container"):
	case strings.HasPrefix(d, "Application application_") && strings.Contains(d, " due to "):
		return yarn.Reason(d)
	default: // who has killed it, or the master's own words
		return firstLines(d, 3)
	}
	why := "its application master ended"
	if _, rest, ok := strings.Cut(d, "exitCode: "); ok {
		var code int
		if n, _ := fmt.Sscanf(rest, "%d", &code); n == 1 {
			why = fmt.Sprintf("its application master ended with exit code %d", code)
		}
	}
	if i := strings.LastIndex(d, "Last 4096 bytes of "); i >= 0 {
		if _, output, _ := strings.Cut(d[i:], "\n"); strings.TrimSpace(output) != "" {
			return why + ": " + firstLines(output, 5)
		}
	}
	if strings.Contains(d, fmt.Sprintf("exitCode: %d", yarn.ExitInvalid)) && !strings.Contains(d, "Exception") {
		return why + ": the NodeManager did not start it, and only its log says why. Of a job with an image, see that yarn.nodemanager.runtime.linux.allowed-runtimes there names its runtime"
	}
	if _, rest, ok := strings.Cut(d, "Diagnostics: "); ok {
		d = rest
	}
	if said := yarn.Reason(d); said != "" {
		why += ": " + said
	}
	return why
}

func firstLines(s string, n int) string {
	var kept []string
	for _, line := range strings.Split(s, "\n") {
		if line = strings.TrimSpace(line); line != "" && len(kept) < n {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
