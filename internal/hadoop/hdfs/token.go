package hdfs

import (
	"context"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
)

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
