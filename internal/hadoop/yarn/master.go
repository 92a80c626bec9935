package yarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/yarn"
)

// Master is an application master's client of the scheduler.
type Master struct {
	rpc       rpc.Caller
	reconnect func()
	close     func() error
	qop       []string

	mu       sync.Mutex
	amrm     token.Token
	response int32 // id of the last response
}

// NewMaster returns a master that logs in with the AMRMToken among the
// credentials. Its service is empty there: it is for whichever RM is active.
func NewMaster(c *conf.Conf, creds *token.Credentials, retry rpc.Retry) (*Master, error) {
	t, ok := creds.Find(token.KindAMRM, "")
	if !ok {
		return nil, fmt.Errorf("no %s among the credentials of this process: it was not started by YARN as an application master", token.KindAMRM)
	}
	rms, err := c.ResourceManagers()
	if err != nil {
		return nil, err
	}
	qop, err := c.RPCProtection()
	if err != nil {
		return nil, err
	}
	m := &Master{amrm: t, qop: qop}
	// Calls may be sent again: the scheduler answers a repeated allocate, known
	// by its response id, as before (ApplicationMasterService.allocate).
	retry.Resend = true
	cl := rpc.New(rpc.Options{
		Protocol: "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB", Addresses: rms.Scheduler,
		Login: m.login(),
		Retry: retry, Timeout: 30 * time.Second, Anywhere: rpc.Anything,
	})
	m.rpc, m.reconnect, m.close = cl, cl.Reconnect, cl.Close
	return m, nil
}

// login authenticates by the current token, with the protection that hadoop.rpc.protection
// requires.
func (m *Master) login() rpc.Login {
	return rpc.TokenLoginFunc(func() (token.Token, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.amrm, nil
	}, m.qop...)
}

// Close ends the connections.
func (m *Master) Close() error { return m.close() }

// Registration describes an AM to the RM.
type Registration struct {
	Host        string
	Port        int // of its RPC service
	TrackingURL string
}

// Registered is the RM's answer. Lost: it answered an earlier call, and that answer was lost, so
// that nothing else is known.
type Registered struct {
	Lost    bool
	Maximum Resource // of one container
	// MemoryOnly: the scheduler counts no other resources. It lets containers have as
	// much of those as they like, or none (DefaultResourceCalculator).
	MemoryOnly bool
	AllCounted bool // the scheduler counts all resources. Neither is set where it is not known
	Queue      string
	Previous   []Container // that run since an earlier attempt
	NMTokens   []NMToken   // for them
}

// NMToken lets its bearer start containers on a node.
type NMToken struct {
	Node  NodeID
	Token token.Token
}

// Register registers the AM. It may be called again after the RM was restarted. If the
// answer to an earlier call was lost, the RM refuses the repeated call; the AM is
// registered nevertheless, and its next heartbeat has the response id 0
// (ApplicationMasterService.registerApplicationMaster).
func (m *Master) Register(ctx context.Context, g Registration) (Registered, error) {
	var r wire.RegisterApplicationMasterResponseProto
	err := m.rpc.Call(ctx, "registerApplicationMaster", &wire.RegisterApplicationMasterRequestProto{
		Host: &g.Host, RpcPort: proto.Int32(int32(g.Port)), TrackingUrl: &g.TrackingURL,
	}, &r)
	if err != nil && !IsAlreadyRegistered(err) {
		return Registered{}, fmt.Errorf("register at the ResourceManager: %w", err)
	}
	m.mu.Lock()
	m.response = 0
	m.mu.Unlock()
	if err != nil {
		return Registered{Lost: true}, nil
	}
	g2 := Registered{
		Maximum: resource(r.GetMaximumCapability()), Queue: r.GetQueue(),
		Previous: containers(r.GetContainersFromPreviousAttempts()), NMTokens: nmTokens(r.GetNmTokensFromPreviousAttempts()),
	}
	types := r.GetSchedulerResourceTypes()
	g2.AllCounted = slices.Contains(types, wire.SchedulerResourceTypes_CPU)
	g2.MemoryOnly = len(types) > 0 && !g2.AllCounted
	return g2, nil
}

// Request asks for a number of containers at a place. Counts are absolute: they
// replace what was asked for before with this priority, place and resource.
type Request struct {
	Priority int32
	Place    string // a node's host, a rack, or Anywhere
	Resource Resource
	Count    int32
	// Label is the partition in which containers are wanted; empty: that of the
	// submission, or else the queue's default. It counts at Anywhere, and holds for the
	// priority's other places, where the scheduler accepts none (SchedulerUtils).
	Label string
	// Strict, at a rack or Anywhere, takes containers only where a narrower place
	// was asked for too (ResourceRequest.setRelaxLocality(false)).
	Strict bool
}

// Anywhere is the place that stands for the whole cluster (ResourceRequest.ANY).
const Anywhere = "*"

// Heartbeat is the content of an allocate call.
type Heartbeat struct {
	Requests []Request
	Release  []ContainerID
	Avoid    []string // hosts that are to be avoided from now on
	Allow    []string // hosts that need not be avoided any more
	Progress float32
}

// Container is an allocated container.
type Container struct {
	ID       ContainerID
	Node     NodeID
	Resource Resource
	Priority int32
	// Opportunistic: the node may stop it for others at any time.
	Opportunistic bool
	HTTP          string      // the NodeManager's web address
	Token         token.Token // shows the NodeManager that the container may be started
}

// Completed is a container that ended.
type Completed struct {
	ID          ContainerID
	Exit        int // the process's exit code, or one of the Exit constants
	Diagnostics string
}

// Preemption names the containers that the scheduler is going to take back
// (PreemptionMessageProto). The CapacityScheduler names only Negotiable ones: it decides again in
// each round, and takes none if others were released. The FairScheduler names only Strict ones.
type Preemption struct {
	Strict     []ContainerID // these
	Negotiable []ContainerID // these, or others that have what is in Resources
	Resources  Resource      // zero: no others would do
}

// Answer is the scheduler's answer to a Heartbeat.
type Answer struct {
	Allocated []Container
	Completed []Completed
	Updated   []Node   // nodes whose state changed
	Headroom  Resource // what the queue and its limits leave for this application
	Nodes     int      // in the cluster
	NMTokens  []NMToken
	Previous  []Container // of an earlier attempt, found again since
	Changed   []Container // of this attempt, with a new token: their resource or kind has changed
	Preempt   Preemption
	Shutdown  bool // the RM wants the AM to end
	Resync    bool // the RM wants the AM to register again
}

// Allocate is the AM's heartbeat.
func (m *Master) Allocate(ctx context.Context, h Heartbeat) (*Answer, error) {
	m.mu.Lock()
	id := m.response
	m.mu.Unlock()
	req := &wire.AllocateRequestProto{
		ResponseId: &id, Progress: &h.Progress, Release: containerIDs(h.Release),
	}
	for _, r := range h.Requests {
		req.Ask = append(req.Ask, r.proto())
	}
	if len(h.Avoid)+len(h.Allow) > 0 {
		req.BlacklistRequest = &wire.ResourceBlacklistRequestProto{BlacklistAdditions: h.Avoid, BlacklistRemovals: h.Allow}
	}
	var r wire.AllocateResponseProto
	if err := m.rpc.Call(ctx, "allocate", req, &r); err != nil {
		return nil, fmt.Errorf("ask the scheduler: %w", err)
	}
	m.mu.Lock()
	m.response = r.GetResponseId()
	if t := r.GetAmRmToken(); t != nil {
		m.amrm = fromProto(t)
	}
	m.mu.Unlock()
	if r.GetAmRmToken() != nil {
		m.reconnect()
	}
	return answer(&r), nil
}

func answer(r *wire.AllocateResponseProto) *Answer {
	a := &Answer{
		Allocated: containers(r.GetAllocatedContainers()), Updated: nodes(r.GetUpdatedNodes()),
		Headroom: resource(r.GetLimit()), Nodes: int(r.GetNumClusterNodes()), NMTokens: nmTokens(r.GetNmTokens()),
		Previous: containers(r.GetContainersFromPreviousAttempts()),
		Preempt: Preemption{
			Strict:     preempted(r.GetPreempt().GetStrictContract().GetContainer()),
			Negotiable: preempted(r.GetPreempt().GetContract().GetContainer()),
			Resources:  negotiable(r.GetPreempt().GetContract().GetResource()),
		},
	}
	for _, u := range r.GetUpdatedContainers() {
		a.Changed = append(a.Changed, container(u.GetContainer()))
	}
	for _, s := range r.GetCompletedContainerStatuses() {
		a.Completed = append(a.Completed, Completed{ID: containerID(s.GetContainerId()), Exit: int(s.GetExitStatus()), Diagnostics: known(s.GetDiagnostics())})
	}
	if r.AMCommand != nil {
		a.Shutdown = r.GetAMCommand() == wire.AMCommandProto_AM_SHUTDOWN
		a.Resync = r.GetAMCommand() == wire.AMCommandProto_AM_RESYNC
	}
	return a
}

// Finish reports the outcome, until the RM has recorded it. ErrGone: there is nothing to finish.
func (m *Master) Finish(ctx context.Context, f Final, diagnostics, trackingURL string) error {
	req := &wire.FinishApplicationMasterRequestProto{
		Diagnostics: &diagnostics, TrackingUrl: &trackingURL,
		FinalApplicationStatus: wire.FinalApplicationStatusProto(f).Enum(),
	}
	for {
		var r wire.FinishApplicationMasterResponseProto
		err := m.rpc.Call(ctx, "finishApplicationMaster", req, &r)
		switch {
		case IsUnknownApplication(err), IsAttemptGone(err), rpc.IsInvalidToken(err):
			return fmt.Errorf("tell the ResourceManager the outcome: %w", errors.Join(ErrGone, err))
		case err != nil:
			return fmt.Errorf("tell the ResourceManager the outcome: %w", err)
		case r.GetIsUnregistered():
			return nil
		}
		// It is, once the RM's state store has it.
		if !backoff.Sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("tell the ResourceManager the outcome: it has not noted it yet: %w", context.Cause(ctx))
		}
	}
}

// ErrGone is returned by Finish for an attempt that the RM has given up.
var ErrGone = errors.New("the ResourceManager does not know this attempt of the application any more")

func (r Request) proto() *wire.ResourceRequestProto {
	p := &wire.ResourceRequestProto{
		Priority: &wire.PriorityProto{Priority: &r.Priority}, ResourceName: &r.Place,
		Capability: r.Resource.proto(), NumContainers: &r.Count, RelaxLocality: proto.Bool(!r.Strict),
		// The default. A ResourceManager with opportunistic containers relies on its
		// being written (OpportunisticContainerAllocator.partitionAskList).
		ExecutionTypeRequest: &wire.ExecutionTypeRequestProto{
			ExecutionType: wire.ExecutionTypeProto_GUARANTEED.Enum(), EnforceExecutionType: proto.Bool(false),
		},
	}
	if r.Label != "" && r.Place == Anywhere {
		p.NodeLabelExpression = &r.Label
	}
	return p
}

func containers(list []*wire.ContainerProto) []Container {
	var out []Container
	for _, c := range list {
		out = append(out, container(c))
	}
	return out
}

func container(c *wire.ContainerProto) Container {
	return Container{
		ID: containerID(c.GetId()), Node: nodeID(c.GetNodeId()), Resource: resource(c.GetResource()),
		Priority: c.GetPriority().GetPriority(), HTTP: c.GetNodeHttpAddress(), Token: fromProto(c.GetContainerToken()),
		Opportunistic: c.GetExecutionType() == wire.ExecutionTypeProto_OPPORTUNISTIC,
	}
}

func preempted(list []*wire.PreemptionContainerProto) []ContainerID {
	var out []ContainerID
	for _, p := range list {
		out = append(out, containerID(p.GetId()))
	}
	return out
}

// negotiable returns what a contract wants in all, of memory and cores: the CapacityScheduler
// asks for so many of its smallest containers (getAllocation in FiCaSchedulerApp).
func negotiable(list []*wire.PreemptionResourceRequestProto) Resource {
	var all Resource
	for _, p := range list {
		one, n := resource(p.GetResource().GetCapability()), int64(p.GetResource().GetNumContainers())
		all.MemoryMB += one.MemoryMB * n
		all.VCores += one.VCores * int32(n)
	}
	return all
}

func nmTokens(list []*wire.NMTokenProto) []NMToken {
	var out []NMToken
	for _, t := range list {
		out = append(out, NMToken{Node: nodeID(t.GetNodeId()), Token: fromProto(t.GetToken())})
	}
	return out
}

func fromProto(p *wire.TokenProto) token.Token {
	return token.Token{Identifier: p.GetIdentifier(), Password: p.GetPassword(), Kind: p.GetKind(), Service: p.GetService()}
}

func toProto(t token.Token) *wire.TokenProto {
	p := &wire.TokenProto{Identifier: t.Identifier, Password: t.Password, Kind: &t.Kind, Service: &t.Service}
	if p.Identifier == nil {
		p.Identifier = []byte{} // required fields
	}
	if p.Password == nil {
		p.Password = []byte{}
	}
	return p
}
