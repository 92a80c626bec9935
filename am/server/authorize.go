package am

import (
	"context"
	"fmt"
	"path"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// gate decides who may call what, and writes a line about every call that changes the
// job, and about every one that is refused: audit is the method, who the party that the
// caller's certificate names, with its address and for an agent the container that it
// says it is in, and allowed whether it was.
type gate struct {
	keys jobtls.Keys
	log  *logrus.Entry
}

// methods are whose they are, and whether they change the job. What agents report does
// so too, all the time; of them, those who are not let in are of interest.
var methods = map[string]struct {
	party   jobtls.Party
	changes bool
}{
	proto.AgentService_Connect_FullMethodName: {jobtls.Agent, false},
	proto.JobService_Status_FullMethodName:    {jobtls.Client, false},
	proto.JobService_Watch_FullMethodName:     {jobtls.Client, false},
	proto.JobService_Kill_FullMethodName:      {jobtls.Client, true},
}

// check gives the error with which a call is refused; nil: it is not.
func (g gate) check(ctx context.Context, method string, request any) error {
	who, err := g.decide(ctx, method)
	if err == nil && !methods[method].changes {
		return nil
	}
	log := g.log.WithFields(logrus.Fields{"audit": path.Base(method), "who": who, "allowed": err == nil})
	if k, ok := request.(*proto.KillRequest); ok {
		log = log.WithField("why", k.Why)
	}
	if err != nil {
		log.WithError(err).Warn("a call was refused")
	} else {
		log.Info("a call changes the job")
	}
	return err
}

func (g gate) decide(ctx context.Context, method string) (who string, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "no peer")
	}
	who = p.Addr.String()
	caller, ok := p.AuthInfo.(connected)
	if !ok {
		return who, status.Error(codes.Unauthenticated, "no TLS")
	}
	who = fmt.Sprintf("%s at %s", caller.party, who)
	if methods[method].party != caller.party {
		return who, status.Error(codes.PermissionDenied, fmt.Sprintf("a job's %s may not call %s", caller.party, method))
	}
	if caller.party == jobtls.Agent && !admitted(ctx, g.keys) {
		return who, status.Error(codes.PermissionDenied, fmt.Sprintf("this agent may not speak for the container %q", speaksFor(ctx)))
	}
	return who, nil
}

// speaksFor is the container that an agent's stream is of, by its metadata. newServer
// lets no stream in whose agent has not the pass for that container.
func speaksFor(ctx context.Context) string {
	list := metadata.ValueFromIncomingContext(ctx, proto.HeaderContainer)
	if len(list) != 1 {
		return ""
	}
	return list[0]
}

// admitted reports whether an agent may speak for the container that it says it does.
func admitted(ctx context.Context, keys jobtls.Keys) bool {
	pass := metadata.ValueFromIncomingContext(ctx, proto.HeaderPass)
	return len(pass) == 1 && keys.Admits(speaksFor(ctx), []byte(pass[0]))
}
