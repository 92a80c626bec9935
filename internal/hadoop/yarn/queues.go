package yarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// Queue returns a queue with its children; for one that does not exist an error
// for which IsUnknownQueue holds.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	var r wire.GetQueueInfoResponseProto
	err := c.rpc.Call(ctx, "getQueueInfo", &wire.GetQueueInfoRequestProto{
		QueueName: &name, IncludeChildQueues: proto.Bool(true), Recursive: proto.Bool(true), IncludeApplications: proto.Bool(false),
	}, &r)
	if err != nil {
		if IsUnknownQueue(err) {
			return Queue{}, &unknownQueue{name: name}
		}
		return Queue{}, fmt.Errorf("look up the queue %q: %w", name, err)
	}
	// ClientRMService returns an empty answer if the scheduler does not know the queue.
	if r.QueueInfo == nil || r.QueueInfo.GetQueueName() == "" {
		return Queue{}, &unknownQueue{name: name}
	}
	return queue(r.QueueInfo), nil
}

type unknownQueue struct {
	name   string
	others []string
}

func (e *unknownQueue) Error() string {
	s := fmt.Sprintf("the cluster has no queue %q", e.name)
	if len(e.others) > 0 {
		s += fmt.Sprintf("; it has %s", list(e.others))
	}
	return s + ": name another with --queue"
}

// CheckQueue returns an error if a queue does not accept applications.
func (c *Client) CheckQueue(ctx context.Context, name string) error {
	if name == "" {
		name = "default"
	}
	q, err := c.Queue(ctx, name)
	var unknown *unknownQueue
	if errors.As(err, &unknown) {
		if c.hasParent(ctx, name) {
			return nil // the scheduler may make the queue when it is first used
		}
		if root, rootErr := c.Queue(ctx, "root"); rootErr == nil {
			unknown.others = root.Leaves()
		}
		return unknown
	}
	if err != nil {
		return err
	}
	if len(q.Children) > 0 {
		return fmt.Errorf("the queue %q takes no applications itself, only its children do: name one of %s with --queue", name, list(q.Leaves()))
	}
	if !q.Running {
		return fmt.Errorf("the queue %q is stopped: name another with --queue, or have it started", name)
	}
	return nil
}

// hasParent reports whether the parent of a queue that is named by its path exists.
func (c *Client) hasParent(ctx context.Context, name string) bool {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return false
	}
	_, err := c.Queue(ctx, name[:i])
	return err == nil
}

// placingType is the type of the applications that QueueFor submits.
const placingType = ApplicationType + "-queue"

// QueueFor returns the queue into which YARN puts an application of a name that names a queue.
// That need not be the one that it names, nor need there be such a queue, where the
// CapacityScheduler has queue mappings (yarn.scheduler.capacity.queue-mappings,
// CSMappingPlacementRule) or the FairScheduler a placement policy. No request tells which there
// are. So an application is submitted and killed, of which YARN keeps that it was: it has no
// master (ApplicationSubmissionContextProto.unmanaged_am), and takes nothing of the cluster.
// The error says that YARN refuses the application.
func (c *Client) QueueFor(ctx context.Context, queue, name string) (string, error) {
	id, _, err := c.NewApplication(ctx)
	if err != nil {
		return "", err
	}
	defer func() { // it may be accepted after all
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingLimit)
		defer cancel()
		_ = c.Kill(ending, id, "it was to show its queue")
	}()
	if err := c.Submit(ctx, Submission{ID: id, Name: name, Type: placingType, Queue: queue, Unmanaged: true}); err != nil {
		return "", err
	}
	r, err := c.Report(ctx, id)
	return r.Queue, err
}

// endingLimit is how long an application of QueueFor is tried to be killed.
const endingLimit = 10 * time.Second

// SameQueue reports whether two names may be of one queue: schedulers name it by its path, or
// by the last part of that.
func SameQueue(a, b string) bool {
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}
