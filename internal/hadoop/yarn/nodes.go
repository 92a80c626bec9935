package yarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/yarn"
)

// Nodes starts and stops containers on NodeManagers.
type Nodes struct {
	mu      sync.Mutex
	tokens  map[NodeID]token.Token
	clients map[NodeID]*rpc.Client
	retry   rpc.Retry
	qop     []string
}

// NewNodes returns clients for NodeManagers, which connect when used, with the
// protection that hadoop.rpc.protection demands.
func NewNodes(c *conf.Conf, retry rpc.Retry) (*Nodes, error) {
	qop, err := c.RPCProtection()
	if err != nil {
		return nil, err
	}
	// A container is started once, however often that is asked for, and stopping is
	// idempotent, so calls may be repeated.
	retry.Resend = true
	return &Nodes{tokens: map[NodeID]token.Token{}, clients: map[NodeID]*rpc.Client{}, retry: retry, qop: qop}, nil
}

// Learn keeps the tokens that came with an Answer.
func (n *Nodes) Learn(tokens []NMToken) {
	var renew []*rpc.Client
	n.mu.Lock()
	for _, t := range tokens {
		n.tokens[t.Node] = t.Token
		if c := n.clients[t.Node]; c != nil {
			renew = append(renew, c)
		}
	}
	n.mu.Unlock()
	for _, c := range renew {
		c.Reconnect()
	}
}

// Start is one container to be started.
type Start struct {
	Container Container
	Launch    Launch
}

// Start starts containers of one node. The map has the error of each one that the node refused,
// unless it has been started before; the error is for all of them.
func (n *Nodes) Start(ctx context.Context, node NodeID, list []Start) (map[ContainerID]error, error) {
	req := &wire.StartContainersRequestProto{}
	for _, s := range list {
		req.StartContainerRequest = append(req.StartContainerRequest, &wire.StartContainerRequestProto{
			ContainerLaunchContext: s.Launch.proto(), ContainerToken: toProto(s.Container.Token),
		})
	}
	var r wire.StartContainersResponseProto
	if err := n.client(node).Call(ctx, "startContainers", req, &r); err != nil {
		return nil, fmt.Errorf("start %s at the NodeManager %s: %w", plural(int64(len(list)), "container"), node, err)
	}
	return startFailures(node, r.GetFailedRequests()), nil
}

// Stop ends containers of one node. The map has the error of each one that the
// node does not know.
func (n *Nodes) Stop(ctx context.Context, node NodeID, ids []ContainerID) (map[ContainerID]error, error) {
	var r wire.StopContainersResponseProto
	if err := n.client(node).Call(ctx, "stopContainers", &wire.StopContainersRequestProto{ContainerId: containerIDs(ids)}, &r); err != nil {
		return nil, fmt.Errorf("stop %s at the NodeManager %s: %w", plural(int64(len(ids)), "container"), node, err)
	}
	return failures("stop", node, r.GetFailedRequests()), nil
}

// Status is a container's state according to its NodeManager.
type Status struct {
	Completed
	Running bool
	// Localizing: its process has not been started, for its files are being brought or
	// unpacked (ContainerSubState.SCHEDULED). NodeManagers before Hadoop 3.1 do not report it.
	Localizing bool
}

// Statuses asks for the state of containers of one node; those that it does not
// know are left out.
func (n *Nodes) Statuses(ctx context.Context, node NodeID, ids []ContainerID) ([]Status, error) {
	var r wire.GetContainerStatusesResponseProto
	if err := n.client(node).Call(ctx, "getContainerStatuses", &wire.GetContainerStatusesRequestProto{ContainerId: containerIDs(ids)}, &r); err != nil {
		return nil, fmt.Errorf("get the status of %s at the NodeManager %s: %w", plural(int64(len(ids)), "container"), node, err)
	}
	var list []Status
	for _, s := range r.GetStatus() {
		list = append(list, Status{
			Completed: Completed{ID: containerID(s.GetContainerId()), Exit: int(s.GetExitStatus()), Diagnostics: known(s.GetDiagnostics())},
			Running:   s.GetState() != wire.ContainerStateProto_C_COMPLETE,
			Localizing: s.GetState() != wire.ContainerStateProto_C_COMPLETE && s.ContainerSubState != nil &&
				s.GetContainerSubState() == wire.ContainerSubStateProto_CSS_SCHEDULED,
		})
	}
	return list, nil
}

// Close ends the connections.
func (n *Nodes) Close() error {
	n.mu.Lock()
	all := n.clients
	n.clients = map[NodeID]*rpc.Client{}
	n.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // it has nothing to report
	}
	return nil
}

func (n *Nodes) client(node NodeID) *rpc.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[node]
	if c == nil {
		c = rpc.New(rpc.Options{
			Protocol:  "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB",
			Addresses: []string{node.String()},
			Login:     n.login(node),
			Retry:     n.retry, Timeout: 30 * time.Second,
		})
		n.clients[node] = c
	}
	return c
}

// login authenticates by the node's current token.
func (n *Nodes) login(node NodeID) rpc.Login {
	return rpc.TokenLoginFunc(func() (token.Token, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		t, ok := n.tokens[node]
		if !ok {
			return t, fmt.Errorf("the ResourceManager has sent no token for the node %s", node)
		}
		return t, nil
	}, n.qop...)
}

// startFailures are the failures of a call that may have been sent before: what that one has
// started has not failed.
func startFailures(node NodeID, list []*wire.ContainerExceptionMapProto) map[ContainerID]error {
	return failures("start", node, slices.DeleteFunc(slices.Clone(list), func(f *wire.ContainerExceptionMapProto) bool {
		text := f.GetException().GetMessage()
		return slices.ContainsFunc(alreadyStarted, func(s string) bool { return strings.Contains(text, s) })
	}))
}

// alreadyStarted is how a NodeManager says that it has been told before to start a container, and
// does or has done so (ContainerManagerImpl.authorizeStartAndResourceIncreaseRequest,
// startContainerInternal).
var alreadyStarted = []string{"Attempt to relaunch the same", "already is running on this node"}

func failures(what string, node NodeID, list []*wire.ContainerExceptionMapProto) map[ContainerID]error {
	m := map[ContainerID]error{}
	for _, f := range list {
		id := containerID(f.GetContainerId())
		m[id] = fmt.Errorf("%s %s at the NodeManager %s: %w", what, id, node, serialized(f.GetException()))
	}
	return m
}

// serialized converts an exception in a response to an error; its cause is often more
// specific.
func serialized(e *wire.SerializedExceptionProto) error {
	var parts []string
	for ; e != nil; e = e.GetCause() {
		class := e.GetClassName()
		reason := Reason(e.GetMessage())
		if s := strings.TrimSpace(class[strings.LastIndexByte(class, '.')+1:] + ": " + reason); len(parts) == 0 || !strings.Contains(parts[len(parts)-1], reason) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return errors.New("no reason given")
	}
	return errors.New(strings.Join(parts, ": "))
}
