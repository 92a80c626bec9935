package yarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am"
	"holdfast/am/core"
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
	TrackingURL  string
	Log          *logrus.Entry

	// AgentKeys makes proto.SecretAgent of the agent in a container.
	AgentKeys func(container string) ([]byte, error)

	// Announced tells which attempt of the application has announced itself last to
	// the job's agents. It is asked while the RM does not answer; nil: that is not
	// known.
	Announced func(ctx context.Context) (attempt int, err error)

	// Resources are the agents' files; nil: those in hadoop.EnvResources.
	Resources []hadoop.LocalResource
	// Command runs in an agent's container; empty: AgentCommand.
	Command string
}

// AgentCommand runs the agent that came as the resource yarn-submit.
const AgentCommand = "exec ./yarn-submit agent 1>><LOG_DIR>/agent.log 2>&1"

// Driver implements am.Driver.
type Driver struct {
	cfg      Config
	log      *logrus.Entry
	master   *hadoop.Master
	nodes    *hadoop.Nodes
	client   *hadoop.Client // nil if the RM does not let this process in as a client
	agent    hadoop.Launch  // without what differs between containers
	reg      hadoop.Registered
	previous []hadoop.Container // from the first registration
	attempt  int32              // of the application
	expiry   time.Duration      // after which it starts another master, if it does not hear of this one
	warning  time.Duration      // between a warning of preemption and the container's end

	events       *mailbox.Mailbox[core.Event]
	supersededBy chan error // capacity 1, and sent to at most once
	ctx          context.Context
	cancel       context.CancelFunc
	wg           sync.WaitGroup

	commands *mailbox.Mailbox[any] // for run
	back     chan any              // results for run

	s *state // owned by run, and by Finish after run has ended
}

var _ am.Driver = (*Driver)(nil)

// Commands are a core.Ask or one of these.
type (
	withdraw string
	launch   string
	release  string
	check    string
)

// New registers the application master. ctx bounds only that.
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
	// run tries again itself, and says meanwhile that it does.
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
		commands: mailbox.New[any](), back: make(chan any, 16), supersededBy: make(chan error, 1), s: newState(),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	// The client is for reading only: the driver does without it where it must.
	d.client, err = hadoop.NewClient(cfg.Conf, hadoop.Options{Credentials: cfg.Credentials, Retry: rpc.Retry{Limit: 3 * time.Second}})
	if err != nil {
		d.log.WithError(err).Info("the cluster's nodes and queues cannot be looked at; asks will not name nodes")
	}
	found := make(chan []hadoop.Node, 1)
	go func() {
		var list []hadoop.Node
		if d.client != nil {
			list, err = d.client.Nodes(ctx)
			if err != nil {
				d.log.WithError(err).Warn("the first asks will not name nodes")
			}
		}
		found <- list
	}()
	reg, regErr := d.register(ctx)
	list := <-found
	if regErr != nil {
		d.cancel()
		_ = d.close() // it has nothing to report
		return nil, regErr
	}
	d.registered(reg)
	d.previous = reg.Previous
	for _, c := range reg.Previous {
		d.s.add(c).launched = true
	}
	d.s.setNodes(list, time.Now())
	d.s.heard = time.Now()
	d.s.served = cfg.Attempt > 1 // it has served the one before
	d.s.sure = d.s.heard
	d.events = mailbox.New[core.Event]()
	d.nodesChanged(list)
	d.wg.Go(d.run)
	return d, nil
}

// warningTime is how long the scheduler leaves its containers to those whom it has
// warned; of either scheduler's properties, which the master's configuration may not
// tell, 15 s is the default.
func warningTime(c *conf.Conf) (time.Duration, error) {
	key := "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill"
	if strings.HasSuffix(c.Get("yarn.resourcemanager.scheduler.class"), ".FairScheduler") {
		key = "yarn.scheduler.fair.waitTimeBeforeKill"
	}
	return c.Duration(key, time.Millisecond, 15*time.Second)
}

// register goes on while no RM answers: one may be taking over from another, and one
// that is away for hours finds this master when it comes back.
func (d *Driver) register(ctx context.Context) (hadoop.Registered, error) {
	for said := false; ; said = true {
		reg, err := d.master.Register(ctx, d.registration())
		if !away(err) || ctx.Err() != nil {
			return reg, err
		}
		if !said {
			d.log.WithError(err).Warn("the ResourceManager does not answer; waiting for it")
		}
		if !backoff.Sleep(ctx, registerPause) {
			return reg, err
		}
	}
}

// registerPause is the wait between two tries to register.
const registerPause = 200 * time.Millisecond

func (d *Driver) registration() hadoop.Registration {
	return hadoop.Registration{Host: d.cfg.Host, Port: d.cfg.Port, TrackingURL: d.cfg.TrackingURL}
}

func (d *Driver) registered(reg hadoop.Registered) {
	if reg.Lost {
		d.log.Warn("the ResourceManager's answer to the registration was lost: what it told of its limits and of containers of before is not known")
		return
	}
	d.reg = reg
	d.nodes.Learn(reg.NMTokens)
}

// environment is what all agents have in common.
func environment(cfg Config) map[string]string {
	env := map[string]string{
		proto.EnvJob:          cfg.Job,
		proto.EnvJobDirectory: cfg.JobDirectory,
		proto.EnvMaster:       cfg.Master,
	}
	// Without security, HDFS takes a process for the user whom this names, and
	// the container runs as whoever runs the NodeManager.
	if user := os.Getenv("HADOOP_USER_NAME"); user != "" && !cfg.Conf.Secure() {
		env["HADOOP_USER_NAME"] = user
	}
	return env
}

// agentCredentials leaves out what only an AM may do, and agents' keys: each gets its
// own (launchOf).
func agentCredentials(all *token.Credentials) *token.Credentials {
	c := all.Clone()
	c.RemoveMasters()
	maps.DeleteFunc(c.Secrets, func(name string, _ []byte) bool {
		return name != proto.SecretConf
	})
	return c
}

// NewTokens gives the tokens to agents that are started from now on, in place of
// those that the AM was started with.
func (d *Driver) NewTokens(c *token.Credentials) { d.commands.Put(newTokens{c}) }

// Events implements am.Driver.
func (d *Driver) Events() *mailbox.Mailbox[core.Event] { return d.events }

// Superseded implements am.Driver.
func (d *Driver) Superseded() <-chan error { return d.supersededBy }

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
func (d *Driver) Ask(a core.Ask) { d.commands.Put(a) }

// Withdraw implements am.Driver.
func (d *Driver) Withdraw(request string) { d.commands.Put(withdraw(request)) }

// Launch implements am.Driver.
func (d *Driver) Launch(container string) { d.commands.Put(launch(container)) }

// Release implements am.Driver.
func (d *Driver) Release(container string) { d.commands.Put(release(container)) }

// Check implements am.Driver.
func (d *Driver) Check(container string) { d.commands.Put(check(container)) }

// Finish implements am.Driver.
func (d *Driver) Finish(ctx context.Context, o core.Finish) error {
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

// tellOutcome goes on while the RM is away, or comes back without knowing us.
func (d *Driver) tellOutcome(ctx context.Context, final hadoop.Final, why string) error {
	for {
		err := d.master.Finish(ctx, final, why, d.cfg.TrackingURL)
		switch {
		case ctx.Err() != nil:
			return err
		case hadoop.IsNotRegistered(err):
			if _, regErr := d.master.Register(ctx, d.registration()); regErr != nil && !rpc.Unreachable(regErr) {
				return errors.Join(err, regErr)
			}
		case !rpc.Unreachable(err):
			return err
		}
	}
}

// stopAll stops what still runs. The RM would do it too, a while later.
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
