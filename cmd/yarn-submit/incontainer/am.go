// Package incontainer is the hidden commands that containers run, or for a local job
// processes: the application master, the agent, and the checks of doctor --cluster.
package incontainer

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"holdfast/am"
	"holdfast/am/local"
	"holdfast/am/metrics"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/am/web"
	"holdfast/am/yarn"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/internal/ownlog"
	"holdfast/proto"
)

// NewAMCommand is what a job's first container, or a local job's first
// process, runs. People do not call it.
func NewAMCommand() *cobra.Command {
	var isLocal bool
	cmd := &cobra.Command{
		Use:    "am",
		Short:  "run a job's application master",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1), // a local job's id, for those who look at processes
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAM(cmd.Context(), isLocal)
		},
	}
	cmd.Flags().BoolVar(&isLocal, "local", false, "processes for containers")
	return cmd
}

// secrets is what travels in a container's credentials.
type secrets struct {
	*token.Credentials
	keys jobtls.Keys
	conf *conf.Conf // nil for a local job without Hadoop
}

// readSecrets reads the credentials that the environment names: the keys of
// one party and the Hadoop configuration of the one who submitted.
func readSecrets(party string) (secrets, error) {
	var s secrets
	var err error
	if path := os.Getenv(proto.EnvCredentials); path != "" {
		s.Credentials, err = token.ReadFile(path)
	} else {
		// DefaultContainerExecutor leaves the file readable to all who come so
		// far. Where it is not ours, its owner has seen to that.
		_ = os.Chmod(os.Getenv(token.EnvFile), 0o600)
		s.Credentials, err = token.FromEnvironment()
	}
	if err != nil {
		return s, fmt.Errorf("reading the container's credentials: %w", err)
	}
	if s.keys, err = jobtls.Unmarshal(s.Secrets[party]); err != nil {
		return s, err
	}
	if packed := s.Secrets[proto.SecretConf]; packed != nil {
		if s.conf, err = conf.Unpack(packed); err != nil {
			return s, fmt.Errorf("reading the Hadoop configuration that came with the job: %w", err)
		}
	}
	return s, nil
}

// agentKeys makes the keys of the agent in a container. The secrets are the master's.
func (s secrets) agentKeys(container string) ([]byte, error) {
	all, err := jobtls.Unmarshal(s.Secrets[proto.SecretAgent])
	if err != nil {
		return nil, err
	}
	own, err := s.keys.Admit(all, container)
	return own.Marshal(), err
}

// copyMasterLog copies this process's log into the job's directory.
func copyMasterLog(dir store.Store, attempt int) *ownlog.Copy {
	return ownlog.Start(ownlog.Options{
		Append: func(ctx context.Context, text []byte) error {
			return store.AppendFile(ctx, dir, proto.MasterLogName(attempt), text, 0o600)
		},
		First: time.Second, Every: 5 * time.Second,
	})
}

func runAM(ctx context.Context, isLocal bool) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	id := os.Getenv(proto.EnvJob)
	log := logrus.WithField("app", id)
	s, err := readSecrets(proto.SecretMaster)
	if err != nil {
		return err
	}
	am.SaveMemory()
	host, attempt := "127.0.0.1", 0
	if !isLocal {
		host = os.Getenv("NM_HOST") // set by every NodeManager, as is the next
		c, err := hadoop.ParseContainerID(os.Getenv("CONTAINER_ID"))
		if err != nil {
			return fmt.Errorf("finding out which attempt of the application this is: %w", err)
		}
		attempt = int(c.Attempt.Number)
		if err := hadoop.CheckImage(); err != nil {
			return err
		}
	}
	tokens, err := tokenRefresher(ctx, s, attempt)
	if err != nil {
		return err
	}
	listener, err := server.Listen(host)
	if err != nil {
		return fmt.Errorf("serving the job's agents and clients: %w", err)
	}
	stores := store.NewOpener(s.conf)
	dir, err := stores.Open(ctx, os.Getenv(proto.EnvJobDirectory))
	if err != nil {
		return ended(fmt.Errorf("opening the job's directory: %w", err))
	}
	defer dir.Close()
	if !isLocal {
		own := copyMasterLog(dir, attempt)
		defer func() {
			last := ""
			if err != nil {
				last = err.Error() + "\n"
			}
			own.Stop(last)
		}()
	}
	announced := make(chan error, 1) // agents may be looking for it already
	go func() {
		announced <- recovery.Announce(ctx, dir, attempt, listener.Address())
		close(announced)
	}()
	spec, err := am.ReadSpec(ctx, dir)
	if err != nil {
		return err
	}
	cfg := am.Config{
		Attempt: attempt,
		ID:      id, Spec: spec, Dir: dir, Keys: s.keys, Listener: listener, Log: log,
		OpenStore: stores.Open,
	}
	if attempt > 1 {
		if err := <-announced; err != nil {
			return err
		}
		if cfg.Predecessor, err = recovery.FindPredecessor(ctx, cfg.Recovery()); err != nil {
			return err
		}
	}
	m, err := am.New(cfg)
	if err != nil {
		return err
	}
	browser := web.Checkpoints(spec, stores.OpenExisting)
	defer browser.Close()
	page, url, err := servePage(host, id, s, web.Site{
		Status: m.Status(), Spec: spec, Files: dir, Dir: ".", Checkpoints: browser, Polled: !isLocal, Metrics: metrics.Handler(id, m.Status()),
		Samples: m.Status().Samples, Relay: true,
	})
	if err != nil {
		return err
	}
	defer page.Close()

	var driver am.Driver
	if isLocal {
		m.SetTrackingURL(url)
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		driver = local.New(local.Config{
			Executable: exe, Job: id, Dir: os.Getenv(proto.EnvJobDirectory),
			Master: listener.Address(), AgentKeys: s.agentKeys,
		})
	} else {
		history, err := historyPage(spec, id)
		if err != nil {
			return err
		}
		onYARN, err := yarn.New(ctx, yarn.Config{
			Conf: s.conf, Credentials: s.Credentials, Spec: spec, Job: id, Attempt: attempt,
			JobDirectory: os.Getenv(proto.EnvJobDirectory), Master: listener.Address(),
			Host: host, Port: listener.Port(), TrackingURL: url, HistoryURL: history, Log: log,
			LatestAttempt: recovery.NewAddressReader(dir).LatestAttempt, AgentKeys: s.agentKeys, Logs: m.Status().SetLogs,
		})
		if err != nil {
			return err
		}
		m.SetQueue(onYARN.Queue())
		if port := os.Getenv("NM_HTTP_PORT"); port != "" {
			m.SetLogsURL(yarn.LogsURL(s.conf, net.JoinHostPort(os.Getenv("NM_HOST"), port), os.Getenv("CONTAINER_ID"), spec.User))
		}
		driver = onYARN
	}
	if err := <-announced; err != nil { // nil if it was asked before
		return err
	}
	stopTokens := refreshTokens(ctx, tokens, append(spec.CheckpointURIs(), dir.URI()), s, m, driver)
	final, err := m.Run(ctx, driver)
	stopTokens()
	if err != nil { // also ErrLeft: YARN must not take this for the job's end
		return err
	}
	removeKeytab(ctx, s, log)
	if final.State != proto.JobState_JOB_STATE_SUCCEEDED {
		log.Infof("the job ended as %s: %s", final.State, final.Why)
	}
	return nil
}
