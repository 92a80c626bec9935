package yarn

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/yarn"

	"holdfast/internal/backoff"
)

// ApplicationType is the type under which jobs are listed.
const ApplicationType = "HOLDFAST"

// Submission is an application to be submitted.
type Submission struct {
	ID          ApplicationID // from NewApplication
	Name        string
	Queue       string // empty: default
	Master      Resource
	MaxAttempts int // of the AM; 0: 1. The RM has a limit of its own
	// AttemptsWithin: older failures do not count towards MaxAttempts; 0: all count.
	AttemptsWithin time.Duration
	// KeepContainers leaves containers running when the AM ends before its
	// application.
	KeepContainers bool
	Tags           []string
	// NodeLabel is that of the AM's container, and of containers whose requests name none;
	// empty: the queue's default.
	NodeLabel   string
	Priority    int32         // 0: the queue's default
	Lifetime    time.Duration // after which the RM kills the application; 0: no limit
	Reservation ReservationID // zero: none
	Logs        LogAggregation
	Type        string // empty: ApplicationType
	Unmanaged   bool   // YARN starts no AM
	// Launch is the AM's. An empty Command stands for that of yarn-submit's AM.
	Launch Launch
	// Agents are the resources that the AM is to give its agents; it finds them
	// in EnvResources.
	Agents []LocalResource
}

// MasterCommand runs the AM from the resource yarn-submit.
const MasterCommand = "exec ./yarn-submit am 1><LOG_DIR>/am.log 2><LOG_DIR>/stderr"

// Demand is what a job's role will ask for, or its application master.
type Demand struct {
	Role     string
	Master   bool // it is the application master's, and Role is empty
	Count    int
	Resource Resource
	Label    string // of the nodes; empty: the queue's default
}

// String says who asks for what.
func (d Demand) String() string {
	if d.Master {
		return fmt.Sprintf("the application master asks for %s", d.Resource)
	}
	return fmt.Sprintf("the role %q asks for %s a task", d.Role, d.Resource)
}

// Flag returns the flag of an option of what asks.
func (d Demand) Flag(option string) string {
	if d.Master {
		return "--am-" + option
	}
	return "--" + d.Role + "-" + option
}

// CheckDemands returns an error if a container can never be had, since it is larger than the
// scheduler's maximum.
func CheckDemands(maximum Resource, demands []Demand) error {
	for _, d := range demands {
		if d.Resource.Fits(maximum) {
			continue
		}
		maximum.Others = maps.Clone(maximum.Others)
		option := "memory"
		switch {
		case d.Resource.MemoryMB > maximum.MemoryMB:
		case d.Resource.VCores > maximum.VCores:
			option = "vcores"
		case d.Resource.GPUs > 0 && maximum.GPUs == 0:
			return fmt.Errorf("the role %q asks for %s a task, and the cluster knows no GPUs (resource type %s): ask for none with %s 0, or for a cluster that has them",
				d.Role, plural(int64(d.Resource.GPUs), "GPU"), gpuResource, d.Flag("gpus"))
		case d.Resource.GPUs > maximum.GPUs:
			option = "gpus"
		default:
			option = "resource"
		}
		maps.DeleteFunc(maximum.Others, func(name string, most Amount) bool { return d.Resource.Others[name].Compare(most) <= 0 })
		return fmt.Errorf("%s, and the cluster gives a container at most %s: lower %s, or have yarn.scheduler.maximum-allocation-* raised", d, maximum, d.Flag(option))
	}
	return nil
}

// Submit submits an application and returns once the RM has accepted it. It
// does not wait until the AM runs.
func (c *Client) Submit(ctx context.Context, s Submission) error {
	for _, r := range append(s.Launch.Resources[:len(s.Launch.Resources):len(s.Launch.Resources)], s.Agents...) {
		if err := r.Check(); err != nil {
			return err
		}
	}
	if c.user != "" {
		// Without security, a process acts on HDFS as the user that this names, and
		// containers run as the NodeManager's user.
		s.Launch.Environment = withDefault(s.Launch.Environment, "HADOOP_USER_NAME", c.user)
	}
	req := &wire.SubmitApplicationRequestProto{ApplicationSubmissionContext: s.proto()}
	if err := c.rpc.Call(ctx, "submitApplication", req, &wire.SubmitApplicationResponseProto{}); err != nil {
		return fmt.Errorf("submit %s to the queue %q: %w", s.ID, req.ApplicationSubmissionContext.GetQueue(), err)
	}
	for {
		r, err := c.Report(ctx, s.ID)
		switch {
		case IsUnknownApplication(err):
			// The RM was replaced before it had saved the application.
			if err := c.rpc.Call(ctx, "submitApplication", req, &wire.SubmitApplicationResponseProto{}); err != nil {
				return fmt.Errorf("submit %s again: %w", s.ID, err)
			}
		case err != nil:
			return err
		case r.State == StateFailed || r.State == StateKilled:
			return fmt.Errorf("the ResourceManager refused %s: %s", s.ID, words(r.Diagnostics))
		case r.State >= StateAccepted:
			return nil
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("submit %s: the ResourceManager has not accepted it yet: %w", s.ID, context.Cause(ctx))
		}
	}
}

func (s Submission) proto() *wire.ApplicationSubmissionContextProto {
	if s.Queue == "" {
		s.Queue = "default"
	}
	if s.MaxAttempts == 0 {
		s.MaxAttempts = 1
	}
	if s.Launch.Command == "" {
		s.Launch.Command = MasterCommand
	}
	if s.Agents != nil {
		s.Launch.Environment = withDefault(s.Launch.Environment, EnvResources, EncodeResources(s.Agents))
	}
	if s.Type == "" {
		s.Type = ApplicationType
	}
	interval := int64(-1)
	if s.AttemptsWithin > 0 {
		interval = s.AttemptsWithin.Milliseconds()
	}
	p := &wire.ApplicationSubmissionContextProto{
		ApplicationId: s.ID.proto(), ApplicationName: &s.Name, Queue: &s.Queue,
		ApplicationType: &s.Type, ApplicationTags: s.Tags,
		AmContainerSpec: s.Launch.proto(), Resource: s.Master.proto(),
		MaxAppAttempts:                          proto.Int32(int32(s.MaxAttempts)),
		KeepContainersAcrossApplicationAttempts: &s.KeepContainers,
		AttemptFailuresValidityInterval:         &interval,
		CancelTokensWhenComplete:                proto.Bool(true),
		LogAggregationContext:                   s.Logs.proto(),
	}
	if s.Unmanaged {
		p.UnmanagedAm = &s.Unmanaged
	}
	if s.NodeLabel != "" {
		p.NodeLabelExpression = &s.NodeLabel
	}
	if s.Priority != 0 {
		p.Priority = &wire.PriorityProto{Priority: &s.Priority}
	}
	if s.Lifetime > 0 {
		p.ApplicationTimeouts = []*wire.ApplicationTimeoutMapProto{{
			ApplicationTimeoutType: wire.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
			Timeout:                proto.Int64(int64(math.Ceil(s.Lifetime.Seconds()))),
		}}
	}
	if s.Reservation != (ReservationID{}) {
		p.ReservationId = &wire.ReservationIdProto{Id: &s.Reservation.Number, ClusterTimestamp: &s.Reservation.Timestamp}
	}
	return p
}

// LogAggregation says which files of containers' log directories NodeManagers collect
// after the application's end: regular expressions of Java's for their names.
type LogAggregation struct {
	Include, Exclude string // empty: all, and none
}

func (l LogAggregation) proto() *wire.LogAggregationContextProto {
	if l == (LogAggregation{}) {
		return nil
	}
	p := &wire.LogAggregationContextProto{ExcludePattern: &l.Exclude}
	if l.Include != "" {
		p.IncludePattern = &l.Include
	}
	return p
}

// withDefault returns a copy of env in which the name has a value.
func withDefault(env map[string]string, name, value string) map[string]string {
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	if _, ok := env[name]; !ok {
		env[name] = value
	}
	return env
}

// words returns the first line of a diagnostics text, or a remark that there is none.
func words(diagnostics string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(diagnostics), "\n")
	if line == "" {
		return "it gave no reason"
	}
	return line
}
