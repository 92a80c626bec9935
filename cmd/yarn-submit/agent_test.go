package main

import (
	"bytes"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// A NodeManager keeps its reason for ending a container only where the process ends
// as one that was killed.
func TestAgentEndsAsOneThatWasKilled(t *testing.T) {
	p := newPlace(t)
	set, err := jobtls.New("job")
	if err != nil {
		t.Fatal(err)
	}
	creds := token.New()
	creds.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	file := filepath.Join(p.dir, "credentials")
	if err := creds.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	master, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	cmd := p.command("agent")
	cmd.Env = append(cmd.Env, proto.EnvCredentials+"="+file, proto.EnvMaster+"="+master.Addr().String(),
		proto.EnvContainer+"=container-1", proto.EnvHost+"=127.0.0.1", proto.EnvJobDirectory+"="+p.dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	c, err := master.Accept() // it is at work
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("after SIGTERM the agent ends with %d:\n%s", code, &said)
	}
}
