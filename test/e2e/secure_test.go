package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/ports"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// secure starts a cluster with Kerberos for a test, and makes tickets for alice.
func secure(t *testing.T, s testcluster.Security, more testcluster.Options) *testcluster.Cluster {
	t.Helper()
	c, err := startSecure(s, more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func startSecure(s testcluster.Security, more testcluster.Options) (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	more.DataNodes, more.NodeManagers, more.Security = 1, 2, &s
	c, err := testcluster.Start(ctx, more)
	if err != nil {
		return nil, err
	}
	if _, err := c.KDC().Tickets(ctx, kdc.Alice); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// kerberizedUp is the cluster that all tests with Kerberos share, but those that
// need another one: it encrypts all its traffic, and its masters' pages use TLS.
var kerberizedUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	c, err := startSecure(testcluster.Security{RPC: "privacy", Data: "privacy", Encrypt: true, AES: true}, testcluster.Options{
		Conf: map[string]string{"yarn.resourcemanager.application-https.policy": "STRICT"},
	})
	stopAtEnd(c)
	return c, err
})

func kerberized(t *testing.T) *testcluster.Cluster {
	t.Helper()
	c, err := kerberizedUp()
	if err != nil {
		t.Fatalf("starting the test cluster with Kerberos: %v", err)
	}
	return c
}

// TestSecure trains on a cluster with Kerberos that encrypts all its traffic,
// and is refused there for every reason that there is, in one line and at once.
func TestSecure(t *testing.T) {
	guarded.enter(t)
	c := kerberized(t)
	t.Run("training", func(t *testing.T) {
		w := where{c}
		j := w.train(t, c.HDFS()+"/user/alice/logs", 60)
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if step := j.newestComplete(); step != 60 {
			t.Errorf("the newest checkpoint is of step %d", step)
		}
		if s := j.status(); s.User != "alice" {
			t.Errorf("the user is %q", s.User)
		}
	})
	t.Run("another realm", func(t *testing.T) {
		tickets, err := c.KDC().Tickets(t.Context(), kdc.Erin)
		if err != nil {
			t.Fatal(err)
		}
		w := where{c}
		j := w.startWith(t, append(w.env(), "KRB5CCNAME="+tickets), "", "--principal", kdc.Erin+"@"+kdc.FarRealm, "--keytab", c.KDC().Keytab(kdc.Erin),
			"--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs="+c.HDFS()+"/user/bob/logs", "--", "sh", "-c", "echo here > logs/file")
		if s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED); s.User != kdc.Bob {
			t.Errorf("the user is %q", s.User)
		}
	})
	t.Run("a task's own tokens", func(t *testing.T) {
		// Hadoop's own client, in a task, has nothing else to be let in by.
		list := c.HadoopCommand(t.Context(), "fs", "-ls", "/user/alice")
		args := append([]string{"--worker", "1", "--worker-memory", "512m", "--env", "KRB5CCNAME=/nonexistent", "--"}, list.Args...)
		j := where{c}.start(t, "", args...)
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if text := j.logs("worker-0"); !strings.Contains(text, "/user/alice/.holdfast") {
			t.Errorf("the task saw\n%s", text)
		}
	})
	t.Run("by tokens alone", func(t *testing.T) { byTokens(t, c, fetchTokens(t, c), c.HDFS()+"/user/alice/logs") })
	t.Run("on the wire", func(t *testing.T) { onTheWire(t, c, true) })
	t.Run("refused", func(t *testing.T) { refusals(t, c) })
	t.Run("keytab", func(t *testing.T) { keytabs(t, c) })
	t.Run("keytab gone", func(t *testing.T) { keytabsGo(t, c) })
}

// fetchTokens gets tokens of alice's as a job does, into a file. Who a process is,
// is settled once, so that one of its own does it.
func fetchTokens(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	test, err := os.Executable()
	must(t, err)
	file := filepath.Join(t.TempDir(), "tokens")
	cmd := exec.CommandContext(t.Context(), test, "part-tokens", file)
	cmd.Env = where{c}.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("getting tokens: %v: %s", err, out)
	}
	return file
}

// partTokens writes tokens of whoever the environment names into a file.
func partTokens(ctx context.Context, file string) error {
	cf, err := conf.Load("")
	if err != nil {
		return err
	}
	renewer, err := delegation.Renewer(ctx, cf)
	if err != nil || renewer != "rm/localhost@"+kdc.Realm {
		return fmt.Errorf("the renewer is %q, %v", renewer, err)
	}
	all, err := delegation.HDFS(ctx, cf, renewer, []string{cf.DefaultFS()})
	if err != nil {
		return err
	}
	rm, err := yarn.NewClient(cf, yarn.Options{})
	if err != nil {
		return err
	}
	defer rm.Close()
	k, err := delegation.ResourceManager(ctx, cf, rm, renewer)
	if err != nil {
		return err
	}
	if d, err := k.Delegation(); err != nil || d.Owner != "alice@"+kdc.Realm || d.Renewer != "rm" || !d.Max.After(time.Now()) {
		return fmt.Errorf("the ResourceManager's token says %+v, %v", d, err)
	}
	all.Tokens[k.Service] = k
	return all.WriteFile(file)
}

// byTokens uses the ResourceManager's and the NameNode's tokens without a ticket.
func byTokens(t *testing.T, c *testcluster.Cluster, file, store string) {
	t.Helper()
	env := append(where{c}.env(), "KRB5CCNAME="+filepath.Join(t.TempDir(), "none"), "HADOOP_TOKEN_FILE_LOCATION="+file)
	stdout, stderr, code := call(t.Context(), env, "", "list", "--output", "json")
	if code != 0 || !strings.Contains(stdout, `"alice"`) {
		t.Errorf("list ended with %d:\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := call(t.Context(), env, "", "ckpt", "ls", store); code != 0 {
		t.Errorf("ckpt ls ended with %d:\n%s%s", code, stdout, stderr)
	}
}

// refusals tries to run a job with what does not let it.
func refusals(t *testing.T, c *testcluster.Cluster) {
	k := c.KDC()
	dir := t.TempDir()
	changed := func(old, text string) string { return changedConf(t, c, old, text) }
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := k.Kinit(t.Context(), kdc.Bob, filepath.Join(dir, "short"), "-l", "1s"); err != nil {
		t.Fatal(err)
	}
	expired := time.Now().Add(1100 * time.Millisecond)
	// A key that was changed after the keytab was made.
	if err := k.Admin(t.Context(), "addprinc -randkey carol", "ktadd -k "+k.Keytab("carol")+" carol", "cpw -randkey carol"); err != nil {
		t.Fatal(err)
	}
	krb5, err := os.ReadFile(k.Config())
	if err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("127.0.0.1:%d", ports.ForTest(t, 1)[0])
	_, address, _ := strings.Cut(string(krb5), " kdc = ")
	address, _, _ = strings.Cut(address, "\n")
	down := write("down.conf", strings.Replace(string(krb5), address, nobody, 1))
	// A token of another cluster has another key, under the same name.
	tokens := filepath.Join(dir, "tokens")
	fetch := c.HadoopCommand(t.Context(), "fetchdt", "--renewer", "rm", tokens)
	fetch.Env = append(fetch.Env, "KRB5CCNAME="+k.TicketCache(kdc.Alice))
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("fetching a token: %v\n%s", err, out)
	}
	b, err := os.ReadFile(tokens)
	if err != nil {
		t.Fatal(err)
	}
	b[strings.Index(string(b), "HDFS_DELEGATION_TOKEN")-3] ^= 1 // in the password
	write("tokens", string(b))

	restart := func(t *testing.T) {
		t.Helper()
		if err := c.Daemon("kdc").Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	skewed := func(t *testing.T) {
		k.SetSkew(10 * time.Minute)
		restart(t)
		t.Cleanup(func() {
			k.SetSkew(0)
			restart(t)
		})
	}
	paused := func(t *testing.T) {
		if err := c.Daemon("kdc").Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Daemon("kdc").Resume(); err != nil {
				t.Error(err)
			}
		})
	}
	// What must be so while some of them are tried.
	during := map[string]func(*testing.T){
		"a KDC that does not answer": paused, "a clock that is wrong": skewed, "a clock that is wrong, with a ticket": skewed,
	}

	keytab := func(principal, file string) []string { return []string{"--principal", principal, "--keytab", file} }
	for time.Now().Before(expired) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, b := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		says []string
	}{
		{"no ticket", map[string]string{"KRB5CCNAME": filepath.Join(dir, "none")}, nil, 4, []string{"there is no Kerberos ticket", "run kinit"}},
		{"an expired ticket", map[string]string{"KRB5CCNAME": filepath.Join(dir, "short")}, nil, 4, []string{"bob@HOLDFAST.TEST", "expired", "run kinit"}},
		{"a cache that cannot be read", map[string]string{"KRB5CCNAME": "KEYRING:persistent:1000"}, nil, 4, []string{"KEYRING", "KRB5CCNAME=FILE:"}},
		{"no configuration of Kerberos", map[string]string{"KRB5_CONFIG": filepath.Join(dir, "none")}, nil, 4, []string{"krb5.conf"}},
		{"another's keytab", nil, keytab("alice", k.Keytab("bob")), 4, []string{"has no key of alice@HOLDFAST.TEST", "bob@HOLDFAST.TEST"}},
		{"a keytab that is not a keytab", nil, keytab("alice", k.Config()), 4, []string{k.Config()}},
		{"a keytab that is not there", nil, keytab("alice", k.Keytab("nobody")), 4, []string{k.Keytab("nobody")}},
		{"an old keytab", nil, keytab("carol", k.Keytab("carol")), 4, []string{"carol@HOLDFAST.TEST", "create a new one"}},
		{"a queue for others", nil, []string{"--queue", "small"}, 4, []string{`"small"`, "alice", "--queue"}},
		{"a checkpoint directory of another's", nil, []string{"--checkpoint", "./logs=" + c.HDFS() + "/user/bob/mine"}, 4, []string{"/user/bob/mine", "alice", "--checkpoint"}},
		{"a principal of an unknown realm", nil, keytab("alice@NOWHERE.TEST", k.Keytab("alice")), 4, []string{"alice@NOWHERE.TEST"}},
		{"a KDC that is down", map[string]string{"KRB5_CONFIG": down}, keytab("alice", k.Keytab("alice")), 3, []string{"no KDC of the realm HOLDFAST.TEST answers", nobody}},
		{"a KDC that is down, with a ticket", map[string]string{"KRB5_CONFIG": down}, nil, 3, []string{"no KDC of the realm HOLDFAST.TEST answers"}},
		{"a stranger", nil, keytab("mallory", k.Keytab("mallory")), 4, []string{"not authorized", "hadoop-policy.xml"}},
		{"a half of two flags", nil, []string{"--principal", "alice"}, 2, []string{"go together"}},
		{"another protection", map[string]string{"HADOOP_CONF_DIR": changed(">privacy<", ">authentication<")}, nil, 4, []string{"auth-conf", "hadoop.rpc.protection"}},
		{"no Kerberos", map[string]string{"HADOOP_CONF_DIR": changed(">kerberos<", ">simple<")}, nil, 4, []string{"hadoop.security.authentication"}},
		{"another service", map[string]string{"HADOOP_CONF_DIR": changed("rm/_HOST", "rm/elsewhere.test")}, nil, 4, []string{"rm/elsewhere.test", "yarn.resourcemanager.principal"}},
		{"a token of another cluster", map[string]string{"HADOOP_TOKEN_FILE_LOCATION": tokens}, nil, 4, []string{"HADOOP_TOKEN_FILE_LOCATION", "another cluster's"}},
		{"a KDC that does not answer", nil, keytab("alice", k.Keytab("alice")), 3, []string{"no KDC of the realm HOLDFAST.TEST answers"}},
		{"a clock that is wrong", nil, keytab("alice", k.Keytab("alice")), 4, []string{"clock skew", "chronyc"}},
		{"a clock that is wrong, with a ticket", nil, nil, 4, []string{"clock skew", "chronyc"}},
		{"the NameNode's web server", map[string]string{"HADOOP_CONF_DIR": changed(c.HDFS()+"<", "hdfs://"+c.NameNodeWeb()+"<")}, nil, 3, []string{c.NameNodeWeb(), "answers in HTTP", "fs.defaultFS"}},
		{"the ResourceManager's web server", map[string]string{"HADOOP_CONF_DIR": changed("<name>yarn.resourcemanager.address</name><value>", "<name>yarn.resourcemanager.address</name><value>"+c.RMWeb()+"</value></property><property><name>x</name><value>")}, nil, 3, []string{c.RMWeb(), "answers in HTTP"}},
	} {
		t.Run(b.name, func(t *testing.T) {
			if make := during[b.name]; make != nil {
				make(t)
			}
			env := where{c}.env()
			for name, v := range b.env {
				env = append(env, name+"="+v)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			_, stderr, code := call(ctx, env, dir, append(append([]string{"run", "--worker", "1", "--worker-memory", "256m"}, b.args...), "--", "true")...)
			if code != b.code {
				t.Errorf("exit code %d, want %d", code, b.code)
			}
			for _, s := range b.says {
				if !strings.Contains(stderr, s) {
					t.Errorf("it does not say %q:\n%s", s, stderr)
				}
			}
			took := time.Since(begun)
			t.Logf("after %s: %s", took.Round(100*time.Millisecond), stderr)
			if took > 10*time.Second { // what is refused is not worth waiting for
				t.Errorf("it took %s", took)
			}
			if strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "goroutine") || strings.Contains(stderr, "\tat ") {
				t.Errorf("it is not one line:\n%s", stderr)
			}
		})
	}
}

// changedConf is a copy of the clients' configuration with some text replaced.
func changedConf(t *testing.T, c *testcluster.Cluster, old, text string) string {
	t.Helper()
	to := t.TempDir()
	found := false
	for _, f := range []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"} {
		b, err := os.ReadFile(filepath.Join(c.ConfDir(), f))
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(b), old)
		if err := os.WriteFile(filepath.Join(to, f), []byte(strings.ReplaceAll(string(b), old, text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("%q is not in the configuration", old)
	}
	return to
}
