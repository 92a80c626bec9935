package yarn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
	wire "holdfast/internal/hadoop/wire/yarn"
)

// Client talks to the ResourceManager as a user.
type Client struct {
	rpc   rpc.Caller
	close func() error
	user  string // empty with security
}

// Options are the settings of a Client.
type Options struct {
	// User is the user as whom calls are made without security; empty: the current user.
	User string
	// Credentials may hold an RM delegation token; nil: those of this process.
	// Without such a token, Kerberos is used (package login).
	Credentials *token.Credentials
	// Retry is for calls that no RM answers.
	Retry rpc.Retry
	// Timeout limits one attempt of a call; 0: as rpc.Options.
	Timeout time.Duration
}

// NewClient returns a client of the cluster that the configuration names.
func NewClient(cf *conf.Conf, o Options) (*Client, error) {
	rms, err := cf.ResourceManagers()
	if err != nil {
		return nil, err
	}
	var security rpc.Login
	if cf.Secure() {
		if security, err = secureLogin(cf, o.Credentials); err != nil {
			return nil, err
		}
	}
	// A submission is identified by its id, so that it may be sent twice; the other
	// calls change nothing or may be repeated.
	o.Retry.Resend = true
	cl := rpc.New(rpc.Options{
		Protocol: "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB", Addresses: rms.Client,
		User: o.User, Login: security, Retry: o.Retry, Timeout: o.Timeout, Anywhere: rpc.Anything,
	})
	c := &Client{rpc: cl, close: cl.Close}
	if !cf.Secure() {
		if c.user = o.User; c.user == "" {
			c.user = rpc.CurrentUser()
		}
	}
	return c, nil
}

// secureLogin authenticates by an RM delegation token, whichever RM is active, or by Kerberos.
func secureLogin(c *conf.Conf, own *token.Credentials) (rpc.Login, error) {
	qop, err := c.RPCProtection()
	if err != nil {
		return nil, err
	}
	s := login.Service{Principal: login.ResourceManager(c), QOP: qop, Token: func() (token.Token, error) {
		credentials := own
		if credentials == nil {
			var err error
			if credentials, err = token.FromEnvironment(); err != nil {
				return token.Token{}, err
			}
		}
		if t, ok := credentials.Find(token.KindRM, ""); ok {
			return t, nil
		}
		return token.Token{}, errors.New("the cluster demands Kerberos (hadoop.security.authentication), and there is no delegation token for its ResourceManager in the file that " + token.EnvFile + " names")
	}}
	return s, s.Check()
}

// DelegationToken obtains a token that lets its bearer act as this client's user towards the
// ResourceManager. The caller sets its service.
func (c *Client) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	r := &common.GetDelegationTokenResponseProto{}
	if err := c.rpc.Call(ctx, "getDelegationToken", &common.GetDelegationTokenRequestProto{Renewer: &renewer}, r); err != nil {
		return token.Token{}, fmt.Errorf("get a delegation token from the ResourceManager: %w", err)
	}
	return token.FromProto(r.GetToken()), nil
}

// Close ends the connections.
func (c *Client) Close() error { return c.close() }

// NewApplication obtains an id for an application, and the maximum size of a container.
func (c *Client) NewApplication(ctx context.Context) (ApplicationID, Resource, error) {
	var r wire.GetNewApplicationResponseProto
	if err := c.rpc.Call(ctx, "getNewApplication", &wire.GetNewApplicationRequestProto{}, &r); err != nil {
		return ApplicationID{}, Resource{}, fmt.Errorf("get an application id from the ResourceManager: %w", err)
	}
	return applicationID(r.GetApplicationId()), resource(r.GetMaximumCapability()), nil
}

// Report returns what the RM knows of an application.
func (c *Client) Report(ctx context.Context, id ApplicationID) (Report, error) {
	var r wire.GetApplicationReportResponseProto
	err := c.rpc.Call(ctx, "getApplicationReport", &wire.GetApplicationReportRequestProto{ApplicationId: id.proto()}, &r)
	if err != nil {
		return Report{}, fmt.Errorf("get the report of %s: %w", id, err)
	}
	return report(r.GetApplicationReport()), nil
}

// Kill ends an application; it returns when the RM has done so.
func (c *Client) Kill(ctx context.Context, id ApplicationID, why string) error {
	req := &wire.KillApplicationRequestProto{ApplicationId: id.proto()}
	if why != "" {
		req.Diagnostics = &why
	}
	for {
		var r wire.KillApplicationResponseProto
		if err := c.rpc.Call(ctx, "forceKillApplication", req, &r); err != nil {
			return fmt.Errorf("kill %s: %w", id, err)
		}
		if r.GetIsKillCompleted() {
			return nil
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("kill %s: the ResourceManager has not done it yet: %w", id, context.Cause(ctx))
		}
	}
}

// Filter selects the applications that List returns; empty fields select all.
type Filter struct {
	Types  []string
	Users  []string
	States []State
}

// List returns applications.
func (c *Client) List(ctx context.Context, f Filter) ([]Report, error) {
	req := &wire.GetApplicationsRequestProto{ApplicationTypes: f.Types, Users: f.Users, Scope: wire.ApplicationsRequestScopeProto_ALL.Enum()}
	for _, s := range f.States {
		req.ApplicationStates = append(req.ApplicationStates, wire.YarnApplicationStateProto(s))
	}
	var r wire.GetApplicationsResponseProto
	if err := c.rpc.Call(ctx, "getApplications", req, &r); err != nil {
		return nil, fmt.Errorf("list the applications: %w", err)
	}
	list := make([]Report, 0, len(r.GetApplications()))
	for _, p := range r.GetApplications() {
		list = append(list, report(p))
	}
	return list, nil
}

// Nodes returns the NodeManagers that the RM knows, whatever their state.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var r wire.GetClusterNodesResponseProto
	req := &wire.GetClusterNodesRequestProto{}
	for n := range wire.NodeStateProto_name {
		req.NodeStates = append(req.NodeStates, wire.NodeStateProto(n))
	}
	if err := c.rpc.Call(ctx, "getClusterNodes", req, &r); err != nil {
		return nil, fmt.Errorf("list the cluster's nodes: %w", err)
	}
	return nodes(r.GetNodeReports()), nil
}

// Metrics counts a cluster's NodeManagers by state.
type Metrics struct{ Active, Lost, Unhealthy, Decommissioned int }

// Metrics counts the cluster's NodeManagers.
func (c *Client) Metrics(ctx context.Context) (Metrics, error) {
	var r wire.GetClusterMetricsResponseProto
	if err := c.rpc.Call(ctx, "getClusterMetrics", &wire.GetClusterMetricsRequestProto{}, &r); err != nil {
		return Metrics{}, fmt.Errorf("get the cluster's metrics: %w", err)
	}
	m := r.GetClusterMetrics()
	return Metrics{
		Active: int(m.GetNumActiveNms()), Lost: int(m.GetNumLostNms()),
		Unhealthy: int(m.GetNumUnhealthyNms()), Decommissioned: int(m.GetNumDecommissionedNms()),
	}, nil
}
