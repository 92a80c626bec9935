package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/doctor/nodecheck"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	"holdfast/proto"
)

// asNobody runs a program as a user without privileges who may open /dev/fuse,
// whatever the mode of this machine's own: $1 is a directory to mount on.
const asNobody = `set -e
mount --make-rprivate /
mount -t tmpfs fuse "$1"
mknod -m 0666 "$1/fuse" c 10 229
mount --bind "$1/fuse" /dev/fuse
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"`

// ordinary makes a place of a user without privileges: of nobody, where the
// tests run as root. It lies below a directory which that user can pass but not
// read, as NodeManagers make them (0710).
func ordinary(t *testing.T) place {
	if os.Getuid() != 0 {
		return newPlace(t)
	}
	const nobody = 65534
	base, err := os.MkdirTemp("/tmp", "holdfast-ordinary-") // t.TempDir lies below directories of root's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	exe, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(base, "yarn-submit")
	if err := os.WriteFile(program, exe, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "dir", "dev"} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(base, 0, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o710); err != nil {
		t.Fatal(err)
	}
	return newPlaceIn(t, filepath.Join(base, "home"), filepath.Join(base, "dir"),
		"unshare", "--mount", "sh", "-c", asNobody, "sh", filepath.Join(base, "dev"), program)
}

// isShut reports whether the memory of a process of ordinary's user is shut to others of the same
// user.
func isShut(pid string) bool {
	peek := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", "/proc/"+pid+"/environ")
	out, err := peek.CombinedOutput()
	return err != nil && strings.Contains(string(out), "ermission denied")
}

// TestAnOrdinaryUser runs a job without any privilege, below a directory that it
// can pass but not read: with a mount, and with all its doors shut to others.
func TestAnOrdinaryUser(t *testing.T) {
	p := ordinary(t)
	store := filepath.Join(p.dir, "store")
	job := p.detached("--worker", "1", "--checkpoint", "./logs="+store, "--",
		"sh", "-c", `stat -f -c 'logs is %T' logs; echo saved > logs/a; sleep 600`)
	said := ""
	s := p.until(job, "a file in the store, and a word about it", func(*proto.JobStatus) bool {
		said, _, _ = p.call("logs", job)
		text, err := os.ReadFile(filepath.Join(store, "a"))
		return err == nil && string(text) == "saved\n" && said != ""
	})
	if !strings.Contains(said, "logs is fuse") {
		t.Errorf("the checkpoint directory is no mount:\n%s", said)
	}
	if info, err := os.Stat(p.home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of local jobs: %v, %v", info.Mode(), err)
	}
	err := filepath.Walk(p.home, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && strings.Contains(path, "credentials") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	get := func(url string) (int, string) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if code, text := get(s.TrackingUrl); code != http.StatusOK || !strings.Contains(text, "worker-0") {
		t.Errorf("%s answers %d: %s", s.TrackingUrl, code, text)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(s.TrackingUrl, "http://"), "/")
	for _, path := range []string{"/", "/status.json"} {
		if code, text := get("http://" + host + path); code != http.StatusForbidden || strings.Contains(text, "worker-0") {
			t.Errorf("without its key the page answers %d: %s", code, text)
		}
	}
	if conn, err := tls.Dial("tcp", masterOf(t, p, job).Address, &tls.Config{InsecureSkipVerify: true}); err == nil {
		_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells of a missing certificate after the handshake
		if conn.Close(); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("the application master speaks to somebody without a certificate: %v", err)
		}
	}
	if out, errs, code := p.call("doctor"); code != client.ExitOK || !strings.Contains(out, "ok    checkpoint mount") {
		t.Errorf("doctor ended with %d:\n%s%s", code, out, errs)
	}
	// Memory with keys is shut to other processes of the same user.
	holders := 0
	for _, process := range processesOf(job) {
		pid, program, _ := strings.Cut(strings.TrimSpace(process), " ")
		if !strings.Contains(program, " am --local ") && !strings.HasSuffix(program, " agent") {
			continue
		}
		if holders++; !isShut(pid) {
			t.Errorf("another process of its user reads the memory of %s", process)
		}
	}
	if holders != 2 {
		t.Errorf("%d processes have keys, want the application master and an agent: %v", holders, processesOf(job))
	}
	follows := p.command("status", job, "--follow")
	if err := follows.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if isShut(fmt.Sprint(follows.Process.Pid)) {
			break
		}
		if time.Now().After(deadline) {
			t.Error("another process of its user reads the memory of one that follows the job")
			break
		}
	}
	_ = follows.Process.Kill()
	_ = follows.Wait()
	// Its user has to find the master's process all the same, when it does not answer.
	if err := syscall.Kill(masterOf(t, p, job).PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.call("kill", job); code != 0 || !strings.Contains(out, job+": ") {
		t.Errorf("kill of a job whose master does not answer ended with %d: %s%s", code, out, errs)
	}
	alone(t, job)
}

// TestADoctorsMemoryIsShut: once doctor, here or on a node, speaks to the cluster, no other process
// of its user reads its memory, where tickets and tokens are.
func TestADoctorsMemoryIsShut(t *testing.T) {
	for _, command := range []string{"doctor", "doctor-node"} {
		t.Run(command, func(t *testing.T) {
			p := ordinary(t)
			silent, err := net.Listen("tcp", "127.0.0.1:0") // of a cluster that takes calls, and answers none
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			at := silent.Addr().String()
			write(t, filepath.Join(p.dir, "conf/core-site.xml"), "<configuration><property><name>fs.defaultFS</name><value>hdfs://"+at+"</value></property></configuration>")
			write(t, filepath.Join(p.dir, "conf/yarn-site.xml"), "<configuration><property><name>yarn.resourcemanager.address</name><value>"+at+"</value></property></configuration>")
			cmd := p.command(command)
			if command == "doctor" {
				cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+filepath.Join(p.dir, "conf"))
			} else {
				packed, err := conf.New(map[string]string{"fs.defaultFS": "hdfs://" + at}).Pack()
				if err != nil {
					t.Fatal(err)
				}
				tokens := token.New()
				tokens.Secrets[proto.SecretConf] = packed
				file := filepath.Join(p.dir, "tokens")
				if err := tokens.WriteFile(file); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(file, 0o644); err != nil { // root has written it
					t.Fatal(err)
				}
				cmd.Env = append(cmd.Env, token.EnvFile+"="+file, nodecheck.EnvDirectory+"=hdfs://"+at+"/check", "CONTAINER_ID=container_1_0001_01_000002")
			}
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			if err := silent.(*net.TCPListener).SetDeadline(time.Now().Add(limit)); err != nil {
				t.Fatal(err)
			}
			conn, err := silent.Accept()
			if err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				t.Fatalf("%s has called nobody: %v\n%s", command, err, out.String())
			}
			defer conn.Close()
			if !isShut(fmt.Sprint(cmd.Process.Pid)) {
				t.Errorf("another process of its user reads the memory of %s", command)
			}
		})
	}
}
