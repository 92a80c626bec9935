package yarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/internal/mailbox"
	"holdfast/proto"
)

// Config is what the driver needs to know.
type Config struct {
	Conf        *conf.Conf
	Credentials *token.Credentials // of the AM's container
	Spec        *proto.JobSpec

	Job          string // the application's id
	Attempt      int    // of the application
	JobDirectory string
	Master       string // host:port of the AM's service for agents
	Host         string // under which the AM registers
	Port         int
	TrackingURL  string // of the page that this process serves
	// HistoryURL is the page of the ended job; empty: the RM shows its own.
	HistoryURL string
	Log        *logrus.Entry

	// AgentKeys returns proto.SecretAgent of the agent in a container.
	AgentKeys func(container string) ([]byte, error)

	// Logs is called with the URL of the NodeManager's page with the logs of each container
	// that the job gets; nil: nobody wants to know.
	Logs func(container, url string)

	// LatestAttempt returns the attempt of the application that announced itself last in
	// the job's directory. It is called while the RM does not answer; nil: there is none
	// to call.
	LatestAttempt func(ctx context.Context) (attempt int, err error)

	// Resources are the agents' files; nil: those in hadoop.EnvResources.
	Resources []hadoop.LocalResource
	// Command is what runs in an agent's container; empty: AgentCommand.
	Command string
}

// AgentCommand runs the agent from the resource yarn-submit.
const AgentCommand = "exec ./yarn-submit agent 1>><LOG_DIR>/agent.log 2>&1"

// LogsURL returns the URL of the page on which a NodeManager, at host:port for HTTP, shows the
// logs of a container (NMWebApp, ContainerLogsPage); "" if the address is not known.
func LogsURL(c *conf.Conf, address, container, user string) string {
	if address == "" {
		return ""
	}
	u := url.URL{Scheme: "http", Host: address}
	if c.Get("yarn.http.policy") == "HTTPS_ONLY" {
		u.Scheme = "https"
	}
	return u.JoinPath("node", "containerlogs", container, user).String()
}

// Driver implements am.Driver.
type Driver struct {
	cfg      Config
	log      *logrus.Entry
	master   *hadoop.Master
	nodes    *hadoop.Nodes
	client   *hadoop.Client // nil if the RM does not accept this process as a client
	agent    hadoop.Launch  // without what differs between containers: see launchOf
	reg      hadoop.Registered
	queue    string             // at the first registration
	previous []hadoop.Container // from the first registration
	attempt  int32              // of the application
	expiry   time.Duration      // after which the RM starts another master if this one sends no heartbeat
	warning  time.Duration      // the time between a warning of preemption and the container's end

	events     *mailbox.Mailbox[event.Event]
	superseded chan error // capacity 1, and sent to at most once
	ctx        context.Context
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	commands *mailbox.Mailbox[any] // for run
	results  chan any              // results for run

	s *state // owned by run, and by Finish after run has ended
}

var _ am.Driver = (*Driver)(nil)

// Commands are an action.Ask or one of these.
type (
	withdraw string
	launch   string
	release  string
	check    string
)

// New registers the application master with the RM and returns its driver. ctx bounds only
// that.
func New(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Log == nil {
		cfg.Log = logrus.NewEntry(logrus.StandardLogger())
	}
	if cfg.Resources == nil {
		list, err := hadoop.DecodeResources(os.Getenv(hadoop.EnvResources))
		if err != nil {
			return nil, fmt.Errorf("the application master was started without the list of its agents' files: %w", err)
		}
		cfg.Resources = list
	}
	if cfg.Command == "" {
		cfg.Command = AgentCommand
	}
	warning, err := warningTime(cfg.Conf)
	if err != nil {
		return nil, err
	}
	expiry, err := expiryTime(cfg.Conf)
	if err != nil {
		return nil, err
	}
	// run retries by itself, and reports that it does.
	master, err := hadoop.NewMaster(cfg.Conf, cfg.Credentials, rpc.Retry{Limit: 2 * time.Second})
	if err != nil {
		return nil, err
	}
	nodes, err := hadoop.NewNodes(cfg.Conf, rpc.Retry{Limit: 8 * time.Second})
	if err != nil {
		return nil, err
	}
	d := &Driver{
		cfg: cfg, log: cfg.Log, master: master, expiry: expiry, warning: warning, attempt: int32(cfg.Attempt),
		nodes: nodes,
		agent: hadoop.Launch{
			Resources: cfg.Resources, Command: cfg.Command,
			Environment: environment(cfg), Credentials: agentCredentials(cfg.Credentials),
		},
		commands: mailbox.New[any](), results: make(chan any, 16), superseded: make(chan error, 1), s: newState(),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	// The client only reads; without it, asks name no nodes and waits are not explained.
	d.client, err = hadoop.NewClient(cfg.Conf, hadoop.Options{Credentials: cfg.Credentials, Retry: rpc.Retry{Limit: 3 * time.Second}})
	if err != nil {
		d.log.WithError(err).Info("cannot read the cluster's nodes and queues; asks will not name nodes")
	}
	d.s.table.place.spec = cfg.Spec
	d.s.table.inherited = cfg.Attempt > 1
	found := make(chan []hadoop.Node, 1)
	go func() {
		found <- d.lookUpNodes(ctx)
	}()
	reg, regErr := d.register(ctx)
	list := <-found
	if regErr != nil {
		d.cancel()
		_ = d.close() // it has nothing to report
		return nil, regErr
	}
	d.registered(reg)
	d.queue = reg.Queue
	d.learnQueue(ctx, reg.Queue)
	d.previous = reg.Previous
	if cfg.Logs != nil {
		d.s.added = func(c hadoop.Container) {
			cfg.Logs(c.ID.String(), LogsURL(cfg.Conf, c.HTTP, c.ID.String(), cfg.Spec.User))
		}
	}
	for _, c := range reg.Previous {
		d.s.add(c).launched = true
	}
	d.s.setNodes(list, time.Now())
	d.s.answeredAt = time.Now()
	d.s.served = cfg.Attempt > 1 // the RM has served the previous attempt
	d.s.soleMasterAt = d.s.answeredAt
	d.events = mailbox.New[event.Event]()
	d.noteUncounted()
	d.updateNodes(list)
	d.wg.Go(d.run)
	return d, nil
}

// lookUpNodes returns the cluster's nodes, nil if they are not to be had, and keeps its
// partitions.
func (d *Driver) lookUpNodes(ctx context.Context) []hadoop.Node {
	if d.client == nil {
		return nil
	}
	list, err := d.client.Nodes(ctx)
	if err != nil {
		d.log.WithError(err).Warn("the first asks will not name nodes")
	}
	if d.s.table.place.partitions, err = d.client.Partitions(ctx); err != nil {
		d.log.WithError(err).Info("cannot read the cluster's node labels")
	}
	return list
}

// learnQueue keeps which nodes the queue's containers get that ask for no label.
func (d *Driver) learnQueue(ctx context.Context, name string) {
	if d.client == nil || len(d.s.table.place.partitions) == 0 {
		return
	}
	if q, err := d.client.Queue(ctx, name); err == nil {
		d.s.table.place.usual = q.DefaultLabel
	}
}

// warningTime returns the time between a scheduler's warning of preemption and the
// container's end. The master's configuration may lack the schedulers' properties, whose
// default is 15 s for both.
func warningTime(c *conf.Conf) (time.Duration, error) {
	key := "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill"
	if strings.HasSuffix(c.Get("yarn.resourcemanager.scheduler.class"), ".FairScheduler") {
		key = "yarn.scheduler.fair.waitTimeBeforeKill"
	}
	return c.Duration(key, time.Millisecond, 15*time.Second)
}

// register retries while no RM answers: one may be failing over to another, and one that
// was away for hours finds this master when it is back.
func (d *Driver) register(ctx context.Context) (hadoop.Registered, error) {
	for said := false; ; said = true {
		reg, err := d.master.Register(ctx, d.registration())
		if rpc.IsInvalidToken(err) {
			err = fmt.Errorf("%w (where nodes have an AMRMProxy, yarn.nodemanager.amrmproxy.enabled, the token is the proxy's: yarn.resourcemanager.scheduler.address in the client's configuration has to be localhost:8049)", err)
		}
		if !rmUnavailable(err) || ctx.Err() != nil {
			return reg, err
		}
		if !said {
			d.log.WithError(err).Warn("the ResourceManager does not answer; waiting for it")
		}
		if !backoff.Sleep(ctx, registerRetryInterval) {
			return reg, err
		}
	}
}

// registerRetryInterval is the wait between two attempts to register.
const registerRetryInterval = 200 * time.Millisecond

func (d *Driver) registration() hadoop.Registration {
	return hadoop.Registration{Host: d.cfg.Host, Port: d.cfg.Port, TrackingURL: d.cfg.TrackingURL}
}

func (d *Driver) registered(reg hadoop.Registered) {
	if reg.Lost {
		d.log.Warn("the ResourceManager's answer to the registration was lost; its limits and the containers of earlier attempts are not known")
		return
	}
	d.reg = reg
	d.s.table.counted = reg.AllCounted
	d.nodes.Learn(reg.NMTokens)
}

// noteUncounted tells if the scheduler does not count resources that the job asks for.
func (d *Driver) noteUncounted() {
	if !d.reg.MemoryOnly {
		return
	}
	uncounted := map[string]bool{}
	for _, r := range d.cfg.Spec.GetRoles() {
		if r.Gpus > 0 {
			uncounted["GPUs"] = true
		}
		for name := range r.Resources {
			uncounted[name] = true
		}
	}
	if names := slices.Sorted(maps.Keys(uncounted)); len(names) > 0 {
		d.events.Put(event.Noted{Text: fmt.Sprintf("the scheduler counts memory alone, so a container may come to a node without %s; with the CapacityScheduler, have yarn.scheduler.capacity.resource-calculator set to DominantResourceCalculator", strings.Join(names, ", "))})
	}
}

// environment returns the variables that all agents have in common.
func environment(cfg Config) map[string]string {
	env := map[string]string{
		proto.EnvJob:          cfg.Job,
		proto.EnvJobDirectory: cfg.JobDirectory,
		proto.EnvMaster:       cfg.Master,
	}
	// Without security, HDFS takes a process for the user that this variable names, while
	// the container runs as the NodeManager's user.
	if user := os.Getenv("HADOOP_USER_NAME"); user != "" && !cfg.Conf.Secure() {
		env["HADOOP_USER_NAME"] = user
	}
	return env
}

// agentCredentials returns the credentials without those that only an AM may use, and
// without agents' keys, since each agent gets its own (launchOf).
func agentCredentials(all *token.Credentials) *token.Credentials {
	c := all.Clone()
	c.RemoveMasters()
	maps.DeleteFunc(c.Secrets, func(name string, _ []byte) bool {
		return name != proto.SecretConf
	})
	return c
}

// NewTokens replaces the tokens of agents that are launched from now on. It may be called
// from any goroutine.
func (d *Driver) NewTokens(c *token.Credentials) { d.commands.Put(newTokens{c}) }

// Events implements am.Driver.
func (d *Driver) Events() *mailbox.Mailbox[event.Event] { return d.events }

// Superseded implements am.Driver.
func (d *Driver) Superseded() <-chan error { return d.superseded }

// Queue returns the queue that the job is in.
func (d *Driver) Queue() string { return d.queue }

// PreviousContainers implements am.Driver. The RM lists at registration the containers of
// earlier attempts that still run (RegisterApplicationMasterResponseProto,
// containers_from_previous_attempts).
func (d *Driver) PreviousContainers() map[string]string {
	nodes := map[string]string{}
	for _, c := range d.previous {
		nodes[c.ID.String()] = c.Node.Host
	}
	return nodes
}

// Ask implements am.Driver.
func (d *Driver) Ask(a action.Ask) { d.commands.Put(a) }

// Withdraw implements am.Driver.
func (d *Driver) Withdraw(request string) { d.commands.Put(withdraw(request)) }

// Launch implements am.Driver.
func (d *Driver) Launch(container string) { d.commands.Put(launch(container)) }

// Release implements am.Driver.
func (d *Driver) Release(container string) { d.commands.Put(release(container)) }

// Check implements am.Driver.
func (d *Driver) Check(container string) { d.commands.Put(check(container)) }

// Finish implements am.Driver.
func (d *Driver) Finish(ctx context.Context, o action.Finish) error {
	d.cancel()
	d.wg.Wait()
	d.stopAll(ctx)
	final := hadoop.FinalFailed
	switch o.State {
	case proto.JobState_JOB_STATE_SUCCEEDED:
		final = hadoop.FinalSucceeded
	case proto.JobState_JOB_STATE_KILLED:
		final = hadoop.FinalKilled
	}
	err := d.tellOutcome(ctx, final, o.Why)
	if errors.Is(err, hadoop.ErrGone) {
		// The application was ended from outside, and the RM ends its containers.
		d.log.WithError(err).Info("nobody wants to know the outcome")
		err = nil
	}
	_ = d.close() // it has nothing to report
	return err
}

// tellOutcome retries while no RM answers, and registers again with one that was restarted.
func (d *Driver) tellOutcome(ctx context.Context, final hadoop.Final, why string) error {
	for {
		err := d.master.Finish(ctx, final, why, d.cfg.HistoryURL)
		switch {
		case ctx.Err() != nil:
			return err
		case hadoop.IsNotRegistered(err):
			if _, regErr := d.master.Register(ctx, d.registration()); regErr != nil && !rmUnavailable(regErr) {
				return errors.Join(err, regErr)
			}
		case !rmUnavailable(err):
			return err
		}
	}
}

// stopAll stops the containers that still run. The RM would do so itself a while later.
func (d *Driver) stopAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for node, ids := range d.s.launchedByNode() {
		wg.Go(func() {
			if _, err := d.nodes.Stop(ctx, node, ids); err != nil {
				d.log.WithError(err).Warn("containers are left to the ResourceManager")
			}
		})
	}
	wg.Wait()
}

func (d *Driver) close() error {
	err := errors.Join(d.master.Close(), d.nodes.Close())
	if d.client != nil {
		err = errors.Join(err, d.client.Close())
	}
	return err
}
