package submit

import (
	"context"

	"holdfast/client/cluster"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// masterCredentials returns the credentials of the application master's container. On a
// secure cluster they contain delegation tokens for the job's file systems, which the
// ResourceManager renews.
func masterCredentials(ctx context.Context, c *cluster.Cluster, set jobtls.Set, spec *proto.JobSpec) (*token.Credentials, error) {
	s, err := SharedCredentials(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	s.Secrets[proto.SecretMaster] = set.Master.Marshal()
	s.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	return s, nil
}

// SharedCredentials returns what all containers of a job get: delegation tokens and the
// Hadoop configuration.
func SharedCredentials(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec) (*token.Credentials, error) {
	packed, err := c.Conf.Pack()
	if err != nil {
		return nil, err
	}
	s := token.New()
	if c.Conf.Secure() {
		if s, err = tokens(ctx, c, spec); err != nil {
			return nil, err
		}
	}
	s.Secrets[proto.SecretConf] = packed
	return s, nil
}

func tokens(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec) (*token.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	renewer, err := delegation.Renewer(ctx, c.Conf)
	if err != nil {
		return nil, err
	}
	s, err := delegation.HDFS(ctx, c.Conf, renewer, append(spec.CheckpointURIs(), c.Home(c.User)))
	if err != nil {
		if refused := cluster.LoginError("HDFS", err); refused != nil {
			err = refused
		}
		return nil, err
	}
	t, err := delegation.ResourceManager(ctx, c.Conf, c.RM, renewer)
	if err != nil {
		return nil, cluster.YARNError(err)
	}
	s.Tokens[t.Service] = t
	return s, nil
}
