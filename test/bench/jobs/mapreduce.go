package jobs

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/test/testcluster/dist"
)

// onYarn has MapReduce's clients look for jobs on YARN.
var onYarn = []string{"-Dmapreduce.framework.name=yarn", "-Dyarn.app.mapreduce.am.staging-dir=/mapreduce"}

// mapReduceJob runs a MapReduce job that sleeps, calls do with its id meanwhile, and kills it.
// Its one task is in its application master ("uber"), so that nodes need no shuffle service.
func (b *Jobs) mapReduceJob(ctx context.Context, do func(job string) error) error {
	jars, err := dist.MapReduceJars(ctx)
	if err != nil {
		return err
	}
	classpath := strings.Join(append(slices.Clone(jars), filepath.Join(filepath.Dir(b.Cluster.Jar("hadoop-common")), "*")), ",")
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd, err := b.mapReduce(running, "org.apache.hadoop.mapreduce.SleepJob", append(slices.Clone(onYarn),
		"-Dmapreduce.job.ubertask.enable=true", "-Dmapreduce.map.memory.mb="+containerMB,
		"-Dyarn.app.mapreduce.am.resource.mb=512",
		"-Dyarn.app.mapreduce.am.command-opts=-Xmx256m --add-opens=java.base/java.lang=ALL-UNNAMED",
		"-Dyarn.application.classpath=$HADOOP_CONF_DIR,"+classpath, "-Dmapreduce.application.classpath="+classpath,
		"-m", "1", "-r", "0", "-mt", "600000")...)
	if err != nil {
		return err
	}
	var says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &says, &says
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var id string
	err = poll(ctx, 2*time.Minute, "a MapReduce job that runs", func() (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("MapReduce's SleepJob ended: %w\n%s", err, bytes.TrimSpace(says.Bytes()))
		default:
		}
		var known struct {
			Apps struct {
				App []struct{ ID, ApplicationType string }
			}
		}
		if err := b.rm(ctx, "apps?states=RUNNING", &known); err != nil {
			return false, err
		}
		for _, a := range known.Apps.App {
			if a.ApplicationType == "MAPREDUCE" {
				id = a.ID
			}
		}
		return id != "", nil
	})
	if err != nil {
		return err
	}
	if err := do(strings.Replace(id, "application_", "job_", 1)); err != nil {
		return err
	}
	if _, err := b.Cluster.Hadoop(ctx, "application", "-kill", id); err != nil {
		return err
	}
	stop()
	<-ended
	return nil
}

// mapReduce is the process of a command of MapReduce's, not yet started.
func (b *Jobs) mapReduce(ctx context.Context, class string, args ...string) (*exec.Cmd, error) {
	jars, err := dist.MapReduceJars(ctx)
	if err != nil {
		return nil, err
	}
	cmd := b.Cluster.HadoopCommand(ctx, append([]string{class}, args...)...)
	cmd.Args[slices.Index(cmd.Args, "-cp")+1] += ":" + strings.Join(jars, ":")
	return cmd, nil
}
