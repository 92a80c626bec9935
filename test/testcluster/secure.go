package testcluster

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/test/testcluster/kdc"
	"holdfast/test/testcluster/properties"
)

// Security makes a cluster one with Kerberos and service ACLs.
type Security struct {
	// RPC is hadoop.rpc.protection and Data dfs.data.transfer.protection:
	// authentication, integrity or privacy, or a list; "authentication" if empty.
	RPC, Data string
	// Encrypt is dfs.encrypt.data.transfer. AES offers AES/CTR/NoPadding for it
	// and for the protection privacy; without it they use 3DES or RC4.
	Encrypt, AES bool
	// TokenLife is the maximum lifetime of delegation tokens; they must be
	// renewed after half of it. With it, AMRM tokens change every 31 s. 0: days.
	TokenLife time.Duration
}

func (s *Security) withDefaults() *Security {
	d := *s
	d.RPC = cmp.Or(d.RPC, "authentication")
	d.Data = cmp.Or(d.Data, "authentication")
	return &d
}

// groups of the daemons' and users' names, which the operating system does not know.
const groups = "nn=supergroup;dn=hadoop;rm=hadoop;nm=hadoop;" + kdc.Alice + "=users;" + kdc.Bob + "=users;" + kdc.Stranger + "=strangers"

// Set of the mode, for daemons and clients.
func (s *Security) properties(k *kdc.KDC) properties.Set {
	insiders := strings.Join([]string{kdc.Alice, kdc.Bob, "nn", "dn", "rm", "nm"}, ",")
	p := properties.Set{
		"hadoop.security.authentication":                    "kerberos",
		"hadoop.security.authorization":                     "true",
		"hadoop.security.auth_to_local":                     "RULE:[1:$1@$0](" + kdc.Erin + "@" + kdc.FarRealm + ")s/.*/" + kdc.Bob + "/ DEFAULT",
		"hadoop.user.group.static.mapping.overrides":        groups,
		"hadoop.rpc.protection":                             s.RPC,
		"dfs.block.access.token.enable":                     "true",
		"dfs.data.transfer.protection":                      s.Data,
		"dfs.encrypt.data.transfer":                         strconv.FormatBool(s.Encrypt),
		"dfs.permissions.superusergroup":                    "supergroup",
		"dfs.namenode.kerberos.principal":                   "nn/_HOST@" + kdc.Realm,
		"dfs.namenode.keytab.file":                          k.Keytab("nn"),
		"dfs.datanode.kerberos.principal":                   kdc.Service("dn"),
		"dfs.datanode.keytab.file":                          k.Keytab("dn"),
		"hadoop.http.authentication.kerberos.principal":     kdc.Service("HTTP"),
		"hadoop.http.authentication.kerberos.keytab":        k.Keytab("HTTP"),
		"dfs.web.authentication.kerberos.principal":         kdc.Service("HTTP"),
		"dfs.web.authentication.kerberos.keytab":            k.Keytab("HTTP"),
		"ignore.secure.ports.for.testing":                   "true", // SASL on ports above 1023, without TLS for the web pages
		"yarn.resourcemanager.principal":                    "rm/_HOST@" + kdc.Realm,
		"yarn.resourcemanager.keytab":                       k.Keytab("rm"),
		"yarn.nodemanager.principal":                        kdc.Service("nm"),
		"yarn.nodemanager.keytab":                           k.Keytab("nm"),
		"yarn.acl.enable":                                   "true",
		"yarn.admin.acl":                                    "rm,nn",
		"yarn.nodemanager.admin-env":                        "KRB5_CONFIG=" + k.Config() + ",JAVA_TOOL_OPTIONS=-Djava.security.krb5.conf=" + k.Config(),
		"security.client.protocol.acl":                      insiders,
		"security.client.datanode.protocol.acl":             insiders,
		"security.datanode.protocol.acl":                    "dn",
		"security.applicationclient.protocol.acl":           insiders,
		"security.applicationmaster.protocol.acl":           "*", // by attempt, not by user
		"security.resourcetracker.protocol.acl":             "nm",
		"security.containermanagement.protocol.acl":         "*",
		"yarn.scheduler.capacity.root.acl_administer_queue": "rm",
		// Those of a queue are beside its parents'; " " is nobody.
		"yarn.scheduler.capacity.root.acl_submit_applications":         " ",
		"yarn.scheduler.capacity.root.default.acl_submit_applications": kdc.Alice + "," + kdc.Bob,
		"yarn.scheduler.capacity.root.small.acl_submit_applications":   kdc.Bob,
	}
	if s.AES {
		p["dfs.encrypt.data.transfer.cipher.suites"] = "AES/CTR/NoPadding"
	}
	// The daemons' first handshakes take long on a busy machine, and a master's files are fetched
	// within this time, too.
	p["yarn.am.liveness-monitor.expiry-interval-ms"] = "40000"
	if s.TokenLife > 0 {
		life, renew := milliseconds(s.TokenLife), milliseconds(s.TokenLife/2)
		for _, prefix := range []string{"dfs.namenode.", "yarn.resourcemanager."} {
			p[prefix+"delegation.token.max-lifetime"] = life
			p[prefix+"delegation.token.renew-interval"] = renew
			p[prefix+"delegation.key.update-interval"] = life
		}
		// A key must live for more than three times the time after which a
		// silent party is given up.
		p["yarn.am.liveness-monitor.expiry-interval-ms"] = "10000"
		for _, kind := range []string{"am-rm-tokens", "container-tokens", "nm-tokens"} {
			p["yarn.resourcemanager."+kind+".master-key-rolling-interval-secs"] = "31"
		}
	}
	return p
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
