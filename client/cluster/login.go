package cluster

import (
	"fmt"
	"os"
	"strings"

	"holdfast/client"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
)

// LoginError returns a one-line error for a failed login, with its cause and what to do
// about it, whatever was attempted after the login; nil if err is anything else.
func LoginError(service string, err error) error {
	cause := rpc.Refusal(err)
	if cause == nil {
		return nil
	}
	remedy := ""
	switch text := cause.Error(); {
	case rpc.IsInvalidToken(cause), strings.Contains(text, "SaslException: DIGEST-MD5"): // the mechanism of tokens
		remedy = fmt.Sprintf("; the token in the file that %s names (%s) has expired, was cancelled or is another cluster's: get a new one (hdfs fetchdt), or unset %s and run kinit",
			token.EnvFile, os.Getenv(token.EnvFile), token.EnvFile)
	case strings.Contains(text, "SIMPLE authentication is not enabled"):
		remedy = fmt.Sprintf("; the cluster demands Kerberos, and the configuration here does not: set hadoop.security.authentication to kerberos in the directory that %s names, or take the cluster's own", conf.EnvDir)
	case strings.Contains(text, "is not authorized for protocol"):
		remedy = "; have the cluster's administrator let you in (hadoop-policy.xml)"
	case strings.Contains(text, "GSS initiate failed"):
		remedy = "; the service does not accept the ticket: its log says why (often a clock that is wrong, or a keytab that is not the service's)"
	}
	if rpc.RemoteClass(cause) == "" {
		return client.WithExitCode(client.ExitCode(err), fmt.Errorf("log in to %s: %w", service, cause))
	}
	return client.WithExitCode(client.ExitCode(err), fmt.Errorf("%s does not let this user in: %w%s", service, cause, remedy))
}
