package hdfs

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
)

// loginTo returns the login to a secure cluster, by delegation token or Kerberos; nil
// without security. The token is looked up for each connection, so that one that was
// replaced in the file of HADOOP_TOKEN_FILE_LOCATION is used. With tokens false, only
// Kerberos is used.
func loginTo(uri string, c *conf.Conf, tokens bool) (rpc.Login, error) {
	if !c.Secure() {
		return nil, nil
	}
	qop, err := c.RPCProtection()
	if err != nil {
		return nil, err
	}
	services, err := tokenServices(uri, c)
	if err != nil {
		return nil, err
	}
	find := func() (token.Token, error) {
		credentials, err := token.FromEnvironment()
		if err != nil {
			return token.Token{}, err
		}
		return findToken(credentials, services)
	}
	s := login.Service{Principal: login.NameNode(c), Token: find, QOP: qop}
	if !tokens {
		s.Token = nil
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", uri, err)
	}
	return s, nil
}

// tokenServices returns the names under which a token for the file system may be
// kept (SecurityUtil.buildTokenService, HAUtilClient.buildTokenServiceForLogicalUri):
// ha-hdfs:NAME of a name service, else IP:PORT, or HOST:PORT where
// hadoop.security.token.service.use_ip is false.
func tokenServices(uri string, c *conf.Conf) ([]string, error) {
	var list []string
	if name, ok := c.Logical(uri); ok {
		list = append(list, "ha-hdfs:"+name)
	}
	addresses, err := c.NameNodes(uri)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			return nil, fmt.Errorf("the NameNode's address %q: %w", a, err)
		}
		list = append(list, strings.ToLower(a))
		if ips, err := net.LookupHost(host); err == nil {
			for _, ip := range ips {
				list = append(list, net.JoinHostPort(ip, port))
			}
		}
	}
	return list, nil
}

func findToken(c *token.Credentials, services []string) (token.Token, error) {
	for _, s := range services {
		if t, ok := c.Find(token.KindHDFS, s); ok {
			return t, nil
		}
	}
	var others []string
	for _, t := range c.Tokens {
		if t.Kind == token.KindHDFS {
			others = append(others, t.Service)
		}
	}
	why := "it has none"
	if len(others) > 0 {
		why = "those in it are for " + strings.Join(others, ", ")
	}
	return token.Token{}, fmt.Errorf("the cluster demands Kerberos, and the file that %s names has no HDFS delegation token for %s (%s): submit the job with a login, or fetch a token with hdfs fetchdt",
		token.EnvFile, services[0], why)
}

// TokenService returns the service of a delegation token for the file system that a
// URI is on: ha-hdfs:NAME of a name service, else as conf.TokenService.
func TokenService(uri string, c *conf.Conf) (string, error) {
	if name, ok := c.Logical(uri); ok {
		return "ha-hdfs:" + name, nil
	}
	addresses, err := c.NameNodes(uri)
	if err != nil {
		return "", err
	}
	return c.TokenService(addresses[0]), nil
}

// DelegationToken obtains a token that lets its bearer act as this client's user, who must
// have logged in by Kerberos. The caller sets its service.
func (c *Client) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	r := &common.GetDelegationTokenResponseProto{}
	if err := c.call(ctx, "getDelegationToken", &common.GetDelegationTokenRequestProto{Renewer: &renewer}, r); err != nil {
		return token.Token{}, err
	}
	return token.FromProto(r.GetToken()), nil
}

// RenewToken renews a token whose renewer this client's user is, and returns
// when it expires now.
func (c *Client) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	r := &common.RenewDelegationTokenResponseProto{}
	if err := c.call(ctx, "renewDelegationToken", &common.RenewDelegationTokenRequestProto{Token: t.Proto()}, r); err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(int64(r.GetNewExpiryTime())), nil
}
