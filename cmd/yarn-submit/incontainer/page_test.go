package incontainer

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"

	"holdfast/am/web/access"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// TestWhoMayChangeCheckpoints: on the page, the job's user and those whom its modify ACL or a
// cluster with ACLs names; on a cluster with Kerberos only through a proxy that has proved that
// it is one.
func TestWhoMayChangeCheckpoints(t *testing.T) {
	const acls = `<property><name>yarn.acl.enable</name><value>true</value></property>`
	const admins = `<property><name>yarn.admin.acl</name><value>root</value></property>`
	const group = `<property><name>yarn.admin.acl</name><value> admins</value></property>` +
		`<property><name>hadoop.user.group.static.mapping.overrides</name><value>carol=staff,admins;admins=staff;bob=</value></property>`
	const kerberos = `<property><name>hadoop.security.authentication</name><value>kerberos</value></property>`
	for _, x := range []struct {
		name, conf, modify, user string
		proven, may              bool
	}{
		{"the job's user", "", "", "alice", false, true},
		{"nobody", "", "", "", false, false},
		{"nobody, where everybody may", "", "*", "", false, false},
		{"another user, where YARN has no ACLs", "", "", "bob", false, false},
		{"one of the modify ACL", "", "bob", "bob", false, true},
		{"another than of the modify ACL", acls, "bob", "carol", false, false},
		{"everybody", "", "*", "carol", false, true},
		{"an administrator", acls + admins, "", "root", false, true},
		{"an administrator, where YARN has no ACLs", admins, "", "root", false, false},
		{"one of the administrators' group", acls + group, "", "carol", false, true},
		{"a user of the same name as that group", acls + group, "", "admins", false, false},
		{"everybody is administrator by default", acls, "", "bob", false, false},
		{"the job's user, says a host of a cluster with Kerberos", kerberos, "", "alice", false, false},
		{"the job's user, says the proxy of a cluster with Kerberos", kerberos, "", "alice", true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte("<configuration>"+x.conf+"</configuration>"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := conf.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			packed, err := c.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if c, err = conf.Unpack(packed); err != nil { // as the application master gets it
				t.Fatal(err)
			}
			may, err := modifiers(&proto.JobSpec{User: "alice", ModifyAcl: x.modify}, c, x.proven)
			if err != nil {
				t.Fatal(err)
			}
			filter := access.ProxyFilter{Proxies: []string{"127.0.0.1"}, Allowed: func(string) bool { return true }, Log: logrus.NewEntry(logrus.New())}
			sees, err := viewers(&proto.JobSpec{User: "alice", ViewAcl: "alice"}, c)
			if err != nil {
				t.Fatal(err)
			}
			if x.conf == acls+group && sees(x.user) != x.may {
				t.Errorf("%s may see the job: %v", x.user, !x.may)
			}
			asked := false
			handler := filter.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked = true
				if who, err := may(r); who != x.user || (err == nil) != x.may {
					t.Errorf("%s may: %q, %v", x.user, who, err)
				}
			}))
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = "127.0.0.1:7"
			if x.user != "" {
				r.AddCookie(&http.Cookie{Name: "proxy-user", Value: url.QueryEscape(x.user)})
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if !asked {
				t.Error("the filter did not pass the request on")
			}
		})
	}
}
