package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/test/testcluster/dist"
	"holdfast/test/testcluster/processes"
)

// Daemon is one process of the cluster, a JVM or the KDC. It keeps its name, ports, configuration
// and storage when it is restarted.
type Daemon struct {
	cluster *Cluster
	name    string
	class   string // of a JVM
	dir     string
	command func() (*exec.Cmd, error) // a new process for it

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for; nil before the first start
	logged int64         // where in the log the present run begins
}

// Name is nn, dn0, rm, nm1 and so on.
func (d *Daemon) Name() string { return d.name }

func (d *Daemon) confDir() string { return filepath.Join(d.dir, "conf") }
func (d *Daemon) logFile() string { return filepath.Join(d.dir, "log") }

var heaps = map[string]string{rmClass: "160m"} // the others have 96 MB

func (d *Daemon) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	log, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", d.name, err)
	}
	defer log.Close()
	if d.logged, err = log.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("opening the log of %s: %w", d.name, err)
	}
	cmd, err := d.command()
	if err != nil {
		return fmt.Errorf("starting %s: %w", d.name, err)
	}
	cmd.Dir = d.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: d.cluster.watchdog.Pid()}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", d.name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	d.cmd, d.exited = cmd, exited
	return nil
}

// jvm is the process of one of Hadoop's daemons.
func (d *Daemon) jvm() (*exec.Cmd, error) {
	heap := heaps[d.class]
	if heap == "" {
		heap = "96m"
	}
	c := d.cluster
	options := append(c.javaOptions(), "-Djava.io.tmpdir="+d.dir) // what Jetty unpacks goes with the cluster
	if c.records() {
		options = append(options, dist.RecordClasses(d.classList()))
	}
	classpath := d.confDir()
	if d.class == kmsClass {
		options = append(options, d.kmsOptions()...)
		classpath += ":" + c.kmsJars
	}
	cmd := exec.Command(c.dist.Java, c.dist.Args(classpath, heap, d.class, options...)...)
	cmd.Env = c.env()
	return cmd, nil
}

// javaOptions are those of all JVMs of the cluster.
func (c *Cluster) javaOptions() []string {
	options := []string{processes.JVMMark + c.dir} // by which the watchdog knows the daemons
	if c.opts.IPv6 {                               // over those of all JVMs
		options = append(options, "-Djava.net.preferIPv4Stack=false", "-Djava.net.preferIPv6Addresses=true", "-Djdk.net.hosts.file="+c.hostsFile())
	}
	if c.kdc != nil {
		options = append(options, "-Djava.security.krb5.conf="+c.kdc.Config()) // the JDK does not heed KRB5_CONFIG
	}
	return options
}

// wait returns when the daemon's process, if any, is gone.
func (d *Daemon) wait() {
	d.mu.Lock()
	exited := d.exited
	d.mu.Unlock()
	if exited != nil {
		<-exited
	}
}

// Running reports whether the daemon has a process, paused or not.
func (d *Daemon) Running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.exited == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// Kill ends the daemon by SIGKILL and returns when it is gone. Containers of a
// NodeManager stay; that a daemon does not run is no error.
func (d *Daemon) Kill() error {
	if err := d.signal(syscall.SIGKILL); err != nil {
		return err
	}
	d.wait()
	return nil
}

// Pause stops the daemon by SIGSTOP, and returns once its last thread has
// stopped: its ports accept connections and answer nothing. That it does not run is an
// error.
func (d *Daemon) Pause() error {
	if !d.Running() {
		return fmt.Errorf("%s does not run, and cannot be paused", d.name)
	}
	if err := d.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return nil
	}
	// That it has stopped, or ended, is looked at and left for others to see.
	err := unix.Waitid(unix.P_PID, d.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	if err != nil && !errors.Is(err, syscall.ECHILD) {
		return fmt.Errorf("waiting for %s to stop: %w", d.name, err)
	}
	return nil
}

// Resume ends a pause.
func (d *Daemon) Resume() error { return d.signal(syscall.SIGCONT) }

func (d *Daemon) signal(s syscall.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return nil
	}
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s: %w", s, d.name, err)
	}
	return nil
}

// Restart kills the daemon if it runs, starts it with its old storage and
// returns when it serves again.
func (d *Daemon) Restart(ctx context.Context) error {
	if err := d.Kill(); err != nil {
		return err
	}
	if err := d.start(); err != nil {
		return err
	}
	return d.ready(ctx)
}

// logs is the log from an offset on.
func (d *Daemon) logs(from int64) string {
	f, err := os.Open(d.logFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, from, 1<<40))
	if err != nil {
		return ""
	}
	return string(text)
}

// Log is what the daemon has printed since it was started last.
func (d *Daemon) Log() string {
	d.mu.Lock()
	from := d.logged
	d.mu.Unlock()
	return d.logs(from)
}

// tail is the end of the log, for an error message.
func (d *Daemon) tail() string {
	lines := strings.Split(strings.TrimSpace(d.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// env is the environment of all that the cluster runs: nothing of another
// Hadoop, and the clients' configuration, which NodeManagers pass on to
// containers (yarn.nodemanager.env-whitelist).
func (c *Cluster) env() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "HADOOP_") && !strings.HasPrefix(name, "YARN_") && !strings.HasPrefix(name, "HOLDFAST_") && !strings.HasPrefix(name, "KRB5") && name != "CLASSPATH" && name != "JAVA_TOOL_OPTIONS" {
			env = append(env, kv)
		}
	}
	env = append(env, "HADOOP_CONF_DIR="+c.ConfDir())
	if c.kdc != nil {
		env = append(env, "KRB5_CONFIG="+c.kdc.Config())
	}
	return env
}
