package jobs

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/test/bench"
	"holdfast/test/pyenv"
)

//go:embed skein_tasks.py
var skeinScript string

// skein runs tasks under skein, and calls do meanwhile. The context that do gets
// ends with skein's client.
func (b *Jobs) skein(ctx context.Context, tasks int, m marks, do func(context.Context) error) error {
	python, err := pyenv.Skein(ctx)
	if err != nil {
		return err
	}
	home, err := b.skeinHome()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(home, "skein_tasks.py"), strconv.Itoa(tasks), containerMB, m.script)
	cmd.Env = append(os.Environ(),
		"HADOOP_CONF_DIR="+b.Cluster.ConfDir(), "HADOOP_HOME="+home, "SKEIN_CONFIG="+filepath.Join(home, "config"),
		"PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- cmd.Wait()
	}()
	err = do(running)
	_ = stdin.Close() // skein_tasks.py takes that for the end; it may have ended before
	if err = errors.Join(err, <-ended); err != nil {
		return fmt.Errorf("skein: %w\n%s", err, bytes.TrimSpace(output.Bytes()))
	}
	return b.idle(ctx)
}

// skeinHome makes what skein takes for Hadoop's home: it only asks the command
// yarn for the classpath.
func (b *Jobs) skeinHome() (string, error) {
	home, err := os.MkdirTemp(b.Dir, "skein-")
	if err != nil {
		return "", err
	}
	jars, err := filepath.Glob(filepath.Join(filepath.Dir(b.Cluster.Jar("hadoop-common")), "*.jar"))
	if err != nil {
		return "", err
	}
	yarn := fmt.Sprintf("#!/bin/sh\necho '%s'\n", strings.Join(append([]string{b.Cluster.ConfDir()}, jars...), ":"))
	return home, errors.Join(
		os.Mkdir(filepath.Join(home, "bin"), 0o755),
		os.WriteFile(filepath.Join(home, "bin", "yarn"), []byte(yarn), 0o755),
		os.WriteFile(filepath.Join(home, "skein_tasks.py"), []byte(skeinScript), 0o644),
	)
}

// skeinLosses is losses with skein.
func (b *Jobs) skeinLosses(ctx context.Context) (took bench.Series, err error) {
	m, err := b.newMarks()
	if err != nil {
		return nil, err
	}
	err = b.skein(ctx, recoverTasks, m, func(ctx context.Context) (err error) {
		took, err = b.killEach(ctx, m)
		return err
	})
	return took, err
}
