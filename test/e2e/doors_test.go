package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	krbclient "github.com/jcmturner/gokrb5/v8/client"
	krbconfig "github.com/jcmturner/gokrb5/v8/config"
	krbcredentials "github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"holdfast/doctor/check"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
	"holdfast/test/asuser"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// TestDoors tries all the doors of a job of alice's on a cluster with Kerberos:
// as bob, who may see it, as mallory, who may not, and as somebody without a name.
func TestDoors(t *testing.T) {
	guarded.enter(t)
	c := kerberized(t)
	for _, user := range []string{kdc.Alice, kdc.Bob, kdc.Stranger} {
		if _, err := c.KDC().Tickets(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	w := where{c}
	run := func(dir string, flags ...string) *job {
		script := "echo the secret of alice | tee logs/weights; sleep 600"
		args := append(flags, "--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs="+c.HDFS()+"/user/alice/"+dir)
		return w.start(t, "", append(args, "--", "sh", "-c", script)...)
	}
	j := run("logs", "--view-acl", "bob")
	j.until(long, "all to run", running)
	j.said(long, "worker-0", "(the secret of alice)")
	d := doors{t: t, c: c, j: j}
	d.find()
	t.Run("page", d.page)
	t.Run("commands", d.commands)
	t.Run("master", d.ports)
	t.Run("secrets", d.secrets)
	t.Run("ui", d.ui)
	t.Run("doctor", func(t *testing.T) {
		stdout, stderr, code := d.as(kdc.Alice, "doctor", "--cluster", "--output", "json")
		found := examined(t, stdout)
		if code != 0 || len(found) != 2 {
			t.Fatalf("doctor ended with %d, of %d nodes:\n%s%s", code, len(found), stdout, stderr)
		}
		for node, subjects := range found {
			// DefaultContainerExecutor runs alice's containers as the NodeManager's user.
			if u := subjects["user"]; u.Level != check.Note || !strings.Contains(u.Text, "LinuxContainerExecutor") {
				t.Errorf("%s: %+v", node, u)
			}
			if h := subjects["HDFS"]; h.Level != check.Good || !strings.Contains(h.Text, "MB/s") {
				t.Errorf("%s: %+v", node, h)
			}
		}
	})
	t.Run("a user of the modify ACL may end it", func(t *testing.T) {
		other := run("other", "--modify-acl", " users")
		if stdout, stderr, code := d.as(kdc.Bob, "kill", other.id); code != 0 {
			t.Errorf("kill ended with %d: %s%s", code, stdout, stderr)
		}
		other.end(long, proto.JobState_JOB_STATE_KILLED)
	})
	if s := j.status(); s.State != proto.JobState_JOB_STATE_RUNNING || s.Tasks[0].Attempt != 0 {
		t.Errorf("after all this the job is %s, attempt %d", s.State, s.Tasks[0].Attempt)
	}
}

// TestDoorsWithoutSecurity: the page is the proxy's alone here too, and a job
// that names who may see it is shown to nobody else.
func TestDoorsWithoutSecurity(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	start := func(flags ...string) *job {
		return w.start(t, "", append(flags, "--worker", "1", "--worker-memory", "256m", "--", "sleep", "600")...)
	}
	closed, public := start("--view-acl", "carol"), start()
	for _, j := range []*job{closed, public} {
		j.until(long, "all to run", running)
	}
	me := closed.status().User
	d := doors{t: t, c: c}
	for _, p := range []struct {
		j          *job
		user, code string
	}{{closed, me, "200"}, {closed, "carol", "200"}, {closed, "mallory", "403"}, {closed, "", "403"}, {public, "mallory", "200"}, {public, "", "200"}} {
		url := "http://" + c.RMWeb() + "/proxy/" + p.j.id + "/status.json"
		if p.user != "" {
			url += "?user.name=" + p.user
		}
		if answer := d.get(t, "", "127.0.0.1", url, ""); !strings.HasPrefix(answer, p.code+" ") || strings.Contains(answer, "worker-0") != (p.code == "200") {
			t.Errorf("as %q, want %s:\n%s", p.user, p.code, answer)
		}
	}
	metrics := d.get(t, "", "127.0.0.1", "http://"+c.RMWeb()+"/proxy/"+public.id+"/metrics", "")
	if want := `holdfast_tasks{app="` + public.id + `",role="worker",state="running"} 1`; !strings.HasPrefix(metrics, "200 ") || !strings.Contains(metrics, "\n"+want+"\n") {
		t.Errorf("the metrics have no %s:\n%s", want, metrics)
	}
	page := d.report(public.id)
	if answer := d.get(t, "", "127.0.0.9", page+"/", "proxy-user="+me); !strings.HasPrefix(answer, "302 http://"+c.RMWeb()+"/proxy/redirect/"+public.id+"/\n") {
		t.Errorf("directly:\n%s", answer)
	}
	t.Run("another user's files", func(t *testing.T) {
		env := append(w.env(), "HADOOP_USER_NAME=mallory")
		for _, args := range [][]string{{"logs", public.id}, {"ckpt", "ls", public.id}} {
			if stdout, stderr, code := call(t.Context(), env, "", args...); code != 4 || !strings.Contains(stderr, "only its user may see its directory") {
				t.Errorf("%s ended with %d:\n%s%s", args, code, stdout, stderr)
			}
		}
	})
	t.Run("doctor", func(t *testing.T) {
		stdout, stderr, code := w.call(t.Context(), "", "doctor", "--node", "127.0.0.3,nowhere", "--output", "json")
		found := examined(t, stdout)
		if code != 1 || len(found) != 2 || found["nowhere"]["container"].Level != check.Bad {
			t.Errorf("doctor ended with %d: %+v\n%s", code, found, stderr)
		}
		for _, subject := range []string{"system", "user", "container's directory", "/tmp", "local directory", "private mounts", "checkpoint mount", "steering", "SELinux", "seccomp", "limits", "memory", "Python", "clock", "HDFS"} {
			if f, ok := found["127.0.0.3"][subject]; !ok || f.Text == "" {
				t.Errorf("nothing is said of %s", subject)
			}
		}
		begin := time.Now()
		stdout, stderr, code = w.call(t.Context(), "", "doctor", "--cluster")
		if code != 0 || !strings.Contains(stdout, "3 nodes (127.0.0.2, 127.0.0.3, 127.0.0.4)") || !strings.Contains(stdout, "checkpoint mount") {
			t.Errorf("doctor ended with %d:\n%s%s", code, stdout, stderr)
		}
		t.Logf("three nodes were looked at within %s:\n%s", time.Since(begin).Round(100*time.Millisecond), stdout)
		if left, err := c.Hadoop(t.Context(), "fs", "-ls", "/user/"+me+"/.holdfast/doctor"); err != nil || strings.Contains(left, "application_") {
			t.Errorf("it left something: %s %v", left, err)
		}
	})
}

// pageThrough opens a job's page: of two ResourceManagers, each may be the proxy, and
// a browser is sent to the active one, of that number.
func pageThrough(t *testing.T, c *testcluster.Cluster, job string, active int) {
	t.Helper()
	cf, err := conf.Load(c.ConfDir())
	must(t, err)
	rms, err := cf.ResourceManagers()
	must(t, err)
	d := doors{t: t, c: c}
	want := "302 http://" + rms.Web[active] + "/proxy/redirect/" + job + "/\n"
	if answer := d.get(t, "", "127.0.0.9", d.report(job)+"/", ""); !strings.HasPrefix(answer, want) {
		t.Errorf("want %s:\n%s", want, answer)
	}
	// The application master registers with a new one in its own time.
	for end := time.Now().Add(long); ; time.Sleep(100 * time.Millisecond) {
		answer := d.get(t, "", "127.0.0.1", "http://"+rms.Web[active]+"/proxy/"+job+"/", "")
		if strings.HasPrefix(answer, "200 ") && strings.Contains(answer, "worker-0") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("through %s:\n%s", rms.Web[active], answer)
		}
	}
}

// examined sorts doctor's findings by node and subject.
func examined(t *testing.T, text string) map[string]map[string]check.Finding {
	t.Helper()
	var list struct{ Findings []check.Finding }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	found := map[string]map[string]check.Finding{}
	for _, f := range list.Findings {
		if f.Node != "" && found[f.Node] == nil {
			found[f.Node] = map[string]check.Finding{}
		}
		if f.Node != "" {
			found[f.Node][f.Subject] = f
		}
	}
	return found
}

// doors are those of one job.
type doors struct {
	t                *testing.T
	c                *testcluster.Cluster
	j                *job
	original, master string // address of the page itself, and of the AM's service
}

// find finds what a stranger would have to guess. This process must not log in:
// it could do so on one cluster only.
func (d *doors) find() {
	a, err := proto.UnmarshalAddress(d.file(proto.AddressFile))
	must(d.t, err)
	d.master = a.Address
	host, service, err := net.SplitHostPort(a.Address)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, port := range listens(d.t, a.PID) {
		if port != service { // the other one is the page's
			d.original = "https://" + net.JoinHostPort(host, port)
		}
	}
}

// report tells where a job's page is without the proxy, on a cluster without
// security.
func (d *doors) report(job string) (page string) {
	return strings.TrimSuffix(d.application(job).OriginalURL, "/")
}

// application returns what the ResourceManager says of a job, on a cluster without security.
func (d *doors) application(job string) yarn.Report {
	d.t.Helper()
	cf, err := conf.Load(d.c.ConfDir())
	if err != nil {
		d.t.Fatal(err)
	}
	rm, err := yarn.NewClient(cf, yarn.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer rm.Close()
	id, err := yarn.ParseApplicationID(job)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := rm.Report(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// file reads from the job's directory, as the superuser.
func (d *doors) file(name string) []byte {
	text, err := d.c.Hadoop(d.t.Context(), "fs", "-cat", "/user/alice/.holdfast/jobs/"+d.j.id+"/"+name)
	if err != nil {
		d.t.Fatal(err)
	}
	return []byte(text)
}

// as runs yarn-submit as another user.
func (d *doors) as(user string, args ...string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithTimeout(d.t.Context(), callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, submit, args...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+d.c.ConfDir(), "KRB5_CONFIG="+d.c.KDC().Config(), "KRB5CCNAME="+d.c.KDC().TicketCache(user))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// get gets a page as a user, empty: without a name, from an address. The answer
// begins with the status and where it redirects to.
func (d *doors) get(t *testing.T, user, from, url, cookie string) string {
	t.Helper()
	return d.send(t, http.MethodGet, user, from, url, cookie, "")
}

// send sends a request with a body.
func (d *doors) send(t *testing.T, method, user, from, url, cookie, body string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	plain := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	do := plain.Do
	if user != "" {
		cfg, err := krbconfig.Load(d.c.KDC().Config())
		if err != nil {
			t.Fatal(err)
		}
		cache, err := krbcredentials.LoadCCache(d.c.KDC().TicketCache(user))
		if err != nil {
			t.Fatal(err)
		}
		login, err := krbclient.NewFromCCache(cache, cfg, krbclient.DisablePAFXFAST(true))
		if err != nil {
			t.Fatal(err)
		}
		do = spnego.NewClient(login, plain, "HTTP/localhost").Do
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	resp, err := do(req)
	if err != nil {
		t.Fatalf("%s as %q: %v", url, user, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s\n%s", resp.StatusCode, resp.Header.Get("Location"), text)
}

// ui looks at the job with yarn-submit ui as its user, as one who may see it, and as one who
// may not: it shows each no more than their commands do.
func (d *doors) ui(t *testing.T) {
	for _, c := range []struct {
		user         string
		listed       bool   // of all users' jobs
		state, files string // what its page and those that need its directory answer
		says         string
	}{
		{kdc.Alice, true, "200", "200", `task=worker-0">worker-0</a>`},
		{kdc.Bob, true, "200", "404", "/proxy/" + d.j.id},
		{kdc.Stranger, false, "403", "403", "YARN does not let this user in"},
	} {
		t.Run(c.user, func(t *testing.T) {
			k := d.c.KDC()
			caller := asuser.Caller{
				Submit: submit, ConfDir: d.c.ConfDir(), Home: t.TempDir(),
				Env: []string{"KRB5_CONFIG=" + k.Config(), "KRB5CCNAME=" + k.TicketCache(c.user)},
			}
			address, stop, err := caller.UI(t.Context())
			must(t, err)
			defer stop()
			jar, err := cookiejar.New(nil)
			must(t, err)
			browser := &http.Client{Jar: jar, Timeout: time.Minute}
			get := func(address string) (code, text string) {
				answer, err := browser.Get(address)
				must(t, err)
				defer answer.Body.Close()
				all, err := io.ReadAll(answer.Body)
				must(t, err)
				return strconv.Itoa(answer.StatusCode), string(all)
			}
			if code, text := get(address); code != "200" || strings.Contains(text, d.j.id) != (c.user == kdc.Alice) {
				t.Errorf("the user's own jobs: %s\n%s", code, text)
			}
			site, _, _ := strings.Cut(address, "?")
			if code, text := get(site + "?everybody=on"); code != "200" || strings.Contains(text, d.j.id) != c.listed {
				t.Errorf("all jobs: %s\n%s", code, text)
			}
			code, text := get(site + "jobs/" + d.j.id + "/")
			if code != c.state || !strings.Contains(text, c.says) || strings.Contains(text, `href="configuration"`) != (c.user == kdc.Alice) {
				t.Errorf("the job's page answers %s, want %s and %q:\n%s", code, c.state, c.says, text)
			}
			for _, p := range []string{"configuration", "checkpoints", "plots", "task?task=worker-0", "log?task=worker-0&attempt=0"} {
				code, text := get(site + "jobs/" + d.j.id + "/" + p)
				if code != c.files || c.user != kdc.Alice && strings.Contains(text, "the secret of alice") {
					t.Errorf("%s answers %s, want %s:\n%s", p, code, c.files, text)
				}
			}
		})
	}
}

func (d *doors) page(t *testing.T) {
	_, port, err := net.SplitHostPort(d.c.RMWeb())
	if err != nil {
		t.Fatal(err)
	}
	proxy := "http://localhost:" + port + "/proxy/" + d.j.id + "/"
	// With this cookie the proxy has warned that the page is another user's.
	warned := "checked_" + d.j.id + "=true"
	for _, c := range []struct{ name, user, path, code, says string }{
		{"its user", kdc.Alice, "", "200", "worker-0"},
		{"its user, as JSON", kdc.Alice, "status.json", "200", `"user":"alice"`},
		{"one whom the ACL names", kdc.Bob, "", "200", "worker-0"},
		{"one whom it does not", kdc.Stranger, "", "403", "mallory may not see this job"},
		{"the same, as JSON", kdc.Stranger, "status.json", "403", "mallory may not see this job"},
		{"one who does not say", "", "", "401", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := d.get(t, c.user, "127.0.0.1", proxy+c.path, warned)
			answer = strings.ReplaceAll(answer, `": "`, `":"`)
			if !strings.HasPrefix(answer, c.code+" ") || !strings.Contains(answer, c.says) {
				t.Errorf("%s", answer)
			}
			if c.code != "200" && strings.Contains(answer, "secret") {
				t.Errorf("it is shown all the same:\n%s", answer)
			}
		})
	}
	for _, c := range []struct{ user, code, says string }{
		{kdc.Alice, "409", "have changed since the plan"}, // she has not been shown one
		{kdc.Bob, "403", "bob may not modify this job"},
		{kdc.Stranger, "403", "mallory may not see this job"},
	} {
		answer := d.send(t, http.MethodPut, c.user, "127.0.0.1", proxy+"prune", warned, "dir=0&keep=1")
		if !strings.HasPrefix(answer, c.code+" ") || !strings.Contains(answer, c.says) {
			t.Errorf("to a change of checkpoints by %s it answers, in place of %s and %q: %s", c.user, c.code, c.says, answer)
		}
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.9"} { // the first is the proxy's
		answer := d.get(t, "", from, d.original+"/status.json", "proxy-user=alice")
		if want := "302 http://" + d.c.RMWeb() + "/proxy/redirect/" + d.j.id + "/status.json\n"; !strings.HasPrefix(answer, want) || strings.Contains(answer, "worker-0") {
			t.Errorf("directly from %s, want %s:\n%s", from, want, answer)
		}
	}
}

func (d *doors) commands(t *testing.T) {
	logs := d.c.HDFS() + "/user/alice/logs"
	for end := time.Now().Add(long); ; time.Sleep(200 * time.Millisecond) { // it is copied every few seconds
		stdout, stderr, code := d.as(kdc.Alice, "logs", d.j.id, "am")
		if strings.Contains(stdout, "prepared: mounting") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the log of the application master ended with %d:\n%s%s", code, stdout, stderr)
		}
	}
	for _, c := range []struct {
		user string
		code int
		args []string
		says string
	}{
		{kdc.Bob, 4, []string{"logs", d.j.id, "am"}, "only its user may see its directory"},
		{kdc.Bob, 0, []string{"status", d.j.id}, "it is alice's"},
		{kdc.Bob, 4, []string{"logs", d.j.id}, "only its user may see its directory"},
		{kdc.Bob, 4, []string{"kill", d.j.id}, "bob"},
		{kdc.Bob, 4, []string{"ckpt", "ls", logs}, "denied"},
		{kdc.Bob, 4, []string{"ckpt", "prune", logs, "--keep", "1"}, "denied"},
		{kdc.Bob, 4, []string{"ckpt", "rollback", logs, "1"}, "denied"},
		{kdc.Stranger, 4, []string{"status", d.j.id}, "mallory"},
		{kdc.Stranger, 4, []string{"kill", d.j.id}, "mallory"},
	} {
		stdout, stderr, code := d.as(c.user, c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) || strings.Contains(stdout, "secret of") {
			t.Errorf("%s: %s ended with %d, want %d and %q:\n%s%s", c.user, strings.Join(c.args, " "), code, c.code, c.says, stdout, stderr)
		}
	}
	out, err := d.c.Hadoop(t.Context(), "fs", "-ls", "-R", "/user/alice")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.Contains(line, " /user/alice/.holdfast") {
			continue // checkpoints are as their directory is
		}
		if !strings.HasPrefix(line, "drwx------") && !strings.HasPrefix(line, "-rw-------") && !strings.HasPrefix(line, "-rwx------") {
			t.Errorf("open to others: %s", line)
		}
	}
}

func (d *doors) ports(t *testing.T) {
	own, err := jobtls.Unmarshal(d.file(proto.KeysFile))
	if err != nil {
		t.Fatal(err)
	}
	other, err := jobtls.New("another job")
	if err != nil {
		t.Fatal(err)
	}
	ownTLS, err := own.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	bare := ownTLS.Clone()
	bare.Certificates = nil
	mixed, err := jobtls.Keys{CA: own.CA, Cert: other.Client.Cert, Key: other.Client.Key}.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		with credentials.TransportCredentials
		code codes.Code
	}{
		{"the job's key", credentials.NewTLS(ownTLS), codes.OK},
		{"no certificate", credentials.NewTLS(bare), codes.Unavailable},
		{"another job's certificate", credentials.NewTLS(mixed), codes.Unavailable},
	} {
		conn, err := grpc.NewClient("passthrough:///"+d.master, grpc.WithTransportCredentials(c.with), grpc.WithNoProxy())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = proto.NewJobServiceClient(conn).Status(ctx, &proto.StatusRequest{})
		if status.Code(err) != c.code {
			t.Errorf("with %s: %v", c.name, err)
		}
		cancel()
		conn.Close()
	}
	for _, pid := range d.j.agents() {
		if l := listens(t, pid); len(l) > 0 {
			t.Errorf("the agent %d listens at %s", pid, l)
		}
	}
	for _, pid := range d.j.masters() {
		if l := listens(t, pid); len(l) != 2 { // the service and the page
			t.Errorf("the application master listens at %s", l)
		}
	}
}

// listens are the ports at which a process accepts TCP connections.
func listens(t *testing.T, pid int) []string {
	t.Helper()
	mine := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			mine[to] = true
		}
	}
	var found []string
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && mine["socket:["+f[9]+"]"] {
				_, port, _ := strings.Cut(f[1], ":")
				n, err := strconv.ParseUint(port, 16, 16)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, strconv.FormatUint(n, 10))
			}
		}
	}
	return found
}

// secrets looks for bytes of the job's keys wherever others could see them.
func (d *doors) secrets(t *testing.T) {
	needles := map[string][]byte{}
	add := func(name string, b []byte) {
		for form, text := range map[string][]byte{"": b, ", as base64": []byte(base64.StdEncoding.EncodeToString(b))} {
			needles[name+form] = text[len(text)/4 : len(text)/4+min(24, len(text)/2)]
		}
	}
	addKeys := func(name string, b []byte) {
		k, err := jobtls.Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		der, _ := pem.Decode(k.Key)
		if der == nil {
			t.Fatalf("the key of %s is not PEM", name)
		}
		add(name+"'s key", der.Bytes)
		add(name+"'s key as PEM", k.Key[len("-----BEGIN PRIVATE KEY-----\n"):])
	}
	addKeys("the client", d.file(proto.KeysFile))
	// What YARN gave the master, as its process finds it.
	pids := d.j.masters()
	if len(pids) != 1 {
		t.Fatalf("application masters: %v", pids)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	_, tokens, found := bytes.Cut(environ, []byte(token.EnvFile+"="))
	tokens, _, _ = bytes.Cut(tokens, []byte{0})
	if !found {
		t.Fatal("the application master has no credentials")
	}
	all, err := token.ReadFile(string(tokens))
	if err != nil {
		t.Fatal(err)
	}
	addKeys("the master", all.Secrets[proto.SecretMaster])
	addKeys("an agent", all.Secrets[proto.SecretAgent])
	for _, k := range all.Tokens {
		add("the "+k.String()+"'s password", k.Password)
	}
	if len(needles) < 16 {
		t.Fatalf("only %d secrets are known", len(needles))
	}
	search := func(where string, content []byte) (hits int) {
		for name, n := range needles {
			if bytes.Contains(content, n) {
				hits++
				t.Errorf("%s holds %s", where, name)
			}
		}
		return hits
	}
	procs, err := filepath.Glob("/proc/[0-9]*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if base := filepath.Base(p); base == "environ" || base == "cmdline" {
			if b, err := os.ReadFile(p); err == nil { // else it has ended
				search(p, b)
			}
		}
	}
	files := 0
	err = filepath.WalkDir(d.c.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Contains(path, "/data/") { // what daemons store is theirs
			return nil // it may have gone meanwhile
		}
		isLog := filepath.Base(path) == "log" || strings.Contains(path, "/logs/")
		if !isLog && !open(d.c.Dir(), path) {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil {
			files++
			search(path, b)
		}
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files were searched: %v", files, err)
	}
	out, err := d.c.Hadoop(t.Context(), "fs", "-cat", "/user/alice/.holdfast/jobs/"+d.j.id+"/*.json", "/user/alice/.holdfast/jobs/"+d.j.id+"/logs/*/*")
	if err != nil {
		t.Error(err)
	}
	search("the job's directory, but for its keys,", bytes.ReplaceAll([]byte(out), d.file(proto.KeysFile), nil))
}

// open reports whether others may read a file, as far as the directories below
// root decide that.
func open(root, path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o004 == 0 {
		return false
	}
	for dir := filepath.Dir(path); dir != root && len(dir) > len(root); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return false
		}
	}
	return true
}
