package container

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/failure"
	"holdfast/container/gpu"
	"holdfast/container/master"
	"holdfast/container/peers"
	"holdfast/container/sandbox"
	"holdfast/container/stage"
	"holdfast/container/steer"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/tfevents"
)

// task is what was prepared for the assigned task, and is shared by its attempts.
type task struct {
	*stage.Stage
	assign   *proto.Assign
	prepared *proto.Prepared
	log      *logrus.Entry

	peers       *peers.Peers
	late        []*proto.Routes // that came while it was being prepared
	port        *peers.Port
	more        []*peers.Port     // besides that
	former      []*peers.Rejector // of ports on which it listened before
	gpus        *gpu.Claim        // nil: the task may use all that it sees
	lease       *master.Lease
	checkpoints stage.Checkpoints
	events      tfevents.Events // that it writes to a checkpoint path
	restore     stage.Restore   // of its attempt
	steerer     steerer
	forwarder   *steer.Forwarder // the steerer, where that is no supervisor
	names       *peers.Names
}

// newTask returns a task for which nothing is prepared.
func newTask(cfg Config, s *stage.Stage, assign *proto.Assign, lease *master.Lease) *task {
	return &task{
		Stage: s, assign: assign, lease: lease,
		log:      cfg.Log.WithField("task", assign.Task),
		prepared: &proto.Prepared{Steering: "none", Mounting: "symlink"},
	}
}

// prepare prepares everything for attempts. close must be called, after a failure, too.
func (t *task) prepare(ctx context.Context, cfg Config, box *sandbox.Box, commits *master.Commits) (err error) {
	if cfg.Unfit != nil {
		return failure.Node(cfg.Unfit)
	}
	assign := t.assign
	if t.peers, err = peers.New(assign); err != nil {
		return err
	}
	if err := t.Furnish(ctx, assign.Files, assign.MemoryMb); err != nil {
		return err
	}
	_ = t.Prewarm(t.peers, assign.PrewarmPlan, true) // the attempt will say so
	if err := t.placeCheckpoints(ctx, cfg, box, commits); err != nil {
		return err
	}
	if err := t.steer(cfg, box); err != nil {
		return err
	}
	if err := t.nameHosts(cfg, box); err != nil {
		return err
	}
	t.port, err = peers.HoldPort(int(assign.Port), cfg.Conf)
	if err != nil {
		return err
	}
	if assign.Port != 0 && t.port.Number != int(assign.Port) {
		t.note("port %d is taken on this host, or a service's; the task listens on %d and its peers are led there", assign.Port, t.port.Number)
	}
	t.prepared.Port = int32(t.port.Number)
	t.prepared.PeerPort = cmp.Or(assign.Port, t.prepared.Port)
	for range assign.MorePorts {
		p, err := peers.HoldPort(0, cfg.Conf)
		if err != nil {
			return err
		}
		t.more = append(t.more, p)
	}
	return t.claimGPUs(ctx, cfg)
}

// changePort reserves another port for the attempts to come, by which peers know the task
// from now on. What still runs of an attempt of another task, and has not been told, finds
// nobody at the one before, which stays reserved for as long as the task is here.
func (t *task) changePort(cfg Config, number int) error {
	if int(t.prepared.PeerPort) == number { // it has been told twice
		return nil
	}
	if former, err := t.port.Reject(); err != nil {
		t.log.WithError(err).Warnf("port %d, on which the task listened, cannot be kept from others", t.port.Number)
	} else {
		t.former = append(t.former, former)
	}
	p, err := peers.HoldPort(number, cfg.Conf)
	if err != nil {
		return err
	}
	t.log.Infof("the task listens on port %d from now on, and %d is kept from others", p.Number, t.port.Number)
	t.port = p
	t.prepared = &proto.Prepared{
		Port: int32(p.Number), PeerPort: int32(number), Steering: t.prepared.Steering, Mounting: t.prepared.Mounting,
	}
	return nil
}

// claimGPUs claims as many GPUs as the task asks for. One that asks for none sees none, in
// a job that counts them.
func (t *task) claimGPUs(ctx context.Context, cfg Config) (err error) {
	asked, others := runtime.AsksForGPUs(t.assign.Spec, t.assign.Role)
	if asked == 0 && !others {
		return nil
	}
	devices := gpu.Given(cfg.GPUs.Devices(), cfg.Env)
	if len(devices) == 0 {
		if asked > 0 {
			t.note("the task asks for GPUs, and its container sees no GPU of NVIDIA's")
		}
		return nil
	}
	if t.gpus, err = gpu.Take(ctx, devices, asked); err == nil {
		t.log.WithField("gpus", t.gpus.Names()).Info("claimed GPUs")
	}
	return err
}

// morePorts returns the numbers of the ports besides the first.
func (t *task) morePorts() []int {
	var numbers []int
	for _, p := range t.more {
		numbers = append(numbers, p.Number)
	}
	return numbers
}

// stopGrace is the time between SIGTERM and SIGKILL for the processes of an attempt of which
// another one has failed.
func (t *task) stopGrace() time.Duration {
	return time.Duration(t.assign.Spec.GetStopGraceMs()) * time.Millisecond
}

func (t *task) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.log.Info(text)
	t.prepared.Notes = append(t.prepared.Notes, text)
}

// placeCheckpoints mounts or links the task's checkpoint paths.
func (t *task) placeCheckpoints(ctx context.Context, cfg Config, box *sandbox.Box, commits *master.Commits) error {
	specs := t.assign.Checkpoints
	onRead := t.restore.Read
	if runtime.Observes(t.assign.Spec, t.assign.Role) {
		onRead = nil // an evaluator reads one checkpoint after the other
	}
	unmounted, err := t.checkpoints.Place(ctx, t.Stage, box, specs, stage.CheckpointOptions{
		Writer: proto.WriterName(t.assign.Job, cfg.Container), Lease: t.lease.Err, OnEvents: t.events.Write, Alone: t.assign.Spec.GetLocal(), Log: t.log,
		OnRead: onRead, OnSave: t.restore.End, OnCommit: commits.Add,
	})
	if err != nil && unmounted != nil && cfg.Image != "" {
		return failure.Node(fmt.Errorf("%w. The task runs in the image %s, where /dev/fuse and the capability SYS_ADMIN have to be given to it: by --image-privileged, or by the nodes' Docker (docs/clusters.md, Images)", err, cfg.Image))
	}
	if err != nil {
		return err
	}
	if t.Stage.Apart != nil && len(specs) > 0 {
		t.note("its working directory has another path than that of other tasks, so that absolute paths from them, or from their checkpoints, lead elsewhere: %v", t.Stage.Apart)
	}
	if unmounted == nil {
		t.prepared.Mounting = "fuse"
	} else if len(specs) > 0 {
		t.note("checkpoint paths are links to their local directory, not mounts: files are visible while they are being written, and a writer that was given up can still write: %v", unmounted)
	}
	return nil
}

// steerer directs connections to the peers' real addresses: a steer.Supervisor, or a
// steer.Forwarder where the kernel is too old for that.
type steerer interface {
	Replace([]steer.Route) steer.Routes
	Cut(before steer.Routes, lost []netip.Addr, processes []int) int
}

// steer starts steering the task's connections.
func (t *task) steer(cfg Config, box *sandbox.Box) error {
	if err := box.Restrictions().Steer; err != nil {
		block, failed := steer.ClaimBlock()
		if failed != nil {
			return failure.Node(failed)
		}
		t.peers.MoveTo(block)
		t.forwarder = steer.NewForwarder(block, t.peers.Own(), cfg.Host, t.log)
		t.steerer = t.forwarder
		t.prepared.Steering = "forwarding"
		t.note("connections to peers on other hosts are forwarded by the agent, which copies their data, since this node does not allow better: %v", err)
		return nil
	}
	t.Supervisor.Host(t.peers.Own(), cfg.Host, t.peers.Virtual())
	t.steerer = t.Supervisor
	t.prepared.Steering = "seccomp"
	return nil
}

// nameHosts gives the task a hosts file of its own.
func (t *task) nameHosts(cfg Config, box *sandbox.Box) error {
	// Where connections are forwarded, peers connect to the real address of the host, and
	// nothing forwards that to the virtual one.
	t.names = peers.NewNames(t.peers, cfg.Host, cfg.Master, t.forwarder != nil)
	unavailable, err := t.names.Bind(cfg.WorkDir, box)
	if unavailable != nil {
		t.note("the task has no hosts file of its own, so the names of its peers work only as NAME:PORT in its command and environment: %v", unavailable)
	}
	return err
}

// route applies new addresses of tasks, and cuts connections to former ones. The task is
// prepared.
func (t *task) route(r *proto.Routes, box *sandbox.Box) {
	cut, err := t.peers.Take(r)
	if err != nil {
		t.log.WithError(err).Error("the new addresses of the task's peers cannot be applied")
		return
	}
	t.direct(cut, box)
}

// direct directs connections to the current addresses of tasks, and cuts those to some.
func (t *task) direct(cut []netip.Addr, box *sandbox.Box) {
	// No new connection may be made to the old address while those are cut.
	before := t.steerer.Replace(t.peers.Table())
	if len(cut) == 0 {
		return
	}
	if n := t.steerer.Cut(before, cut, box.Processes()); n > 0 {
		t.log.WithFields(logrus.Fields{"peers": t.peers.Called(cut), "connections": n}).Info("cut connections to lost peers")
	}
}

// begin applies to the prepared task the routes that arrived meanwhile.
func (t *task) begin(box *sandbox.Box) {
	for _, r := range t.late {
		if _, err := t.peers.Take(r); err != nil { // no attempt has a connection yet
			t.log.WithError(err).Error("the new addresses of the task's peers cannot be applied")
		}
	}
	t.late = nil
	t.direct(nil, box)
}

// close releases everything. The task's processes have ended.
func (t *task) close(ctx context.Context, box *sandbox.Box) {
	t.port.Release()
	for _, p := range t.more {
		p.Release()
	}
	for _, p := range t.former {
		p.Close()
	}
	t.gpus.Release()
	t.Stage.Close(box) // the namespace's end is the mounts' end
	t.checkpoints.Close(ctx, t.log)
	if t.forwarder != nil {
		t.forwarder.Close()
	}
}
