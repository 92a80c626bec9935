package rpc_test

import (
	"errors"
	"testing"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
)

// tickets tells for which service a ticket was asked.
type tickets struct {
	rpc.Tickets
	service string
}

var errAsked = errors.New("asked")

func (a *tickets) Ticket(service string) (sasl.Ticket, error) {
	a.service = service
	return sasl.Ticket{}, errAsked
}

// Realm is by krb5.conf: [domain_realm] .far.test = FAR.TEST, else the default.
func (a *tickets) Realm(host string) string {
	if host == "n1.far.test" {
		return "FAR.TEST"
	}
	return "A.TEST"
}

// TestPatternsOfPrincipals: dfs.namenode.kerberos.principal.pattern lets in whom Hadoop's clients let
// in by it (GlobPattern), and nobody else.
func TestPatternsOfPrincipals(t *testing.T) {
	for _, x := range []struct {
		pattern, name, service, host string
		realm                        string // of the ticket; "": refused
	}{
		{"*", "", "nn", "n1.a.test", "A.TEST"},
		{"*", "", "nn", "n1.far.test", "FAR.TEST"},
		{"*@A.TEST", "", "nn", "n1.a.test", "A.TEST"},
		{"*@A.TEST", "", "nn", "n1.far.test", ""},
		{"nn/*", "nn/_HOST@B.TEST", "nn", "n1.a.test", "A.TEST"},
		{"nn/*@FAR.TEST", "", "nn", "n1.far.test", "FAR.TEST"},
		{"nn/n?.a.test@A.TEST", "", "nn", "n1.a.test", "A.TEST"},
		{"nn/n?.a.test@A.TEST", "", "nn", "n12.a.test", ""},
		{"nn/n1.a.test", "", "nn", "n1.a.test", ""}, // a pattern is of the whole principal
		{"nn/n1xa.test@*", "", "nn", "n1.a.test", ""},
		{"nn/n1.a.test@*", "", "nn", "n1xa.test", ""},
		{"nn/{n1,n2}.a.test@A.TEST", "", "nn", "n2.a.test", "A.TEST"},
		{"nn/{n1,n2}.a.test@A.TEST", "", "nn", "n3.a.test", ""},
		{"{nn,hdfs/}*@*", "", "hdfs", "n3.a.test", "A.TEST"},
		{"nn/n[0-9].a.test@A.TEST", "", "nn", "n7.a.test", "A.TEST"},
		{"nn/n[!0-9].a.test@A.TEST", "", "nn", "n7.a.test", ""},
		{"nn/n[^1].a.test@A.TEST", "", "nn", "nx.a.test", "A.TEST"},
		{`nn/\*@A.TEST`, "", "nn", "n1.a.test", ""},
		{"nn/a+(b)|c$^!@A.TEST", "", "nn", "a+(b)|c$^!", "A.TEST"},
		// Where there is a pattern, the name counts no longer.
		{"rm/*@A.TEST", "nn/n1.a.test@A.TEST", "nn", "n1.a.test", ""},
		{"nn/n[1", "nn/n1.a.test@A.TEST", "nn", "n1.a.test", ""},
		{"nn/{n1", "nn/n1.a.test@A.TEST", "nn", "n1.a.test", ""},
		{`nn/n1.a.test@A.TEST\`, "nn/n1.a.test@A.TEST", "nn", "n1.a.test", ""},
	} {
		var a tickets
		login := rpc.KerberosLogin(&a, rpc.Principal{Key: "dfs.namenode.kerberos.principal", Name: x.name, Pattern: x.pattern})
		_, _, err := login.Start(t.Context(), "127.0.0.1:1", []rpc.Auth{{Method: "KERBEROS", Mechanism: "GSSAPI", Protocol: x.service, ServerID: x.host}})
		want := ""
		if x.realm != "" {
			want = x.service + "/" + x.host + "@" + x.realm
		}
		if a.service != want || errors.Is(err, errAsked) != (want != "") {
			t.Errorf("%s, with the name %q: of %s/%s a ticket for %q is asked: %v", x.pattern, x.name, x.service, x.host, a.service, err)
		}
	}
}
