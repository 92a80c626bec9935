// Package login is the identity of this process to Hadoop's services, as
// UserGroupInformation's login user is in Java: one for the whole process. It
// authenticates by the delegation tokens of its credentials (the file that
// HADOOP_TOKEN_FILE_LOCATION names), and where there is none for a service, as
// a Kerberos user: the one of As, or else of the ticket cache.
//
// The token file is read anew for each connection, so that replacing it is all that is
// needed to use new tokens.
package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
)

var process struct {
	sync.Mutex
	user   *kerberos.User
	before *kerberos.User
	keytab bool // user is from a keytab
}

// As makes this process act as a user with a keytab instead of the ticket cache's. Logins that
// are under way may still use the previous user, which is closed by the next call.
func As(u *kerberos.User) {
	process.Lock()
	defer process.Unlock()
	if process.before != nil {
		process.before.Close()
	}
	process.before, process.user, process.keytab = process.user, u, true
}

// User returns the Kerberos user that this process acts as. New tickets that kinit has put into
// the cache are used once the old ones have expired, if they are of the same principal: a process
// is one user from its first login to its end.
func User() (*kerberos.User, error) {
	process.Lock()
	defer process.Unlock()
	if process.user != nil && (process.keytab || !process.user.Expired()) {
		return process.user, nil
	}
	read := kerberos.FromCache
	if process.user != nil {
		read = process.user.Anew
	}
	u, err := read()
	if err != nil {
		return nil, err
	}
	process.user = u
	return u, nil
}

// Name returns the user's name on the cluster.
func Name(c *conf.Conf) (string, error) {
	rules := c.Get("hadoop.security.auth_to_local")
	credentials, err := token.FromEnvironment()
	if err != nil {
		return "", err
	}
	for _, kind := range []string{token.KindRM, token.KindHDFS} {
		if t, ok := credentials.Find(kind, ""); ok {
			id, err := t.Delegation()
			if err != nil {
				return "", err
			}
			return kerberos.Name(id.Owner, rules)
		}
	}
	u, err := User()
	if err != nil {
		return "", err
	}
	return kerberos.Name(u.Principal(), rules)
}

// Service is a service of a secure cluster.
type Service struct {
	Principal rpc.Principal
	Token     func() (token.Token, error) // finds a delegation token for it; nil: Kerberos only
	QOP       []string                    // conf.RPCProtection
}

// NameNode and ResourceManager are the principals of these services.
func NameNode(c *conf.Conf) rpc.Principal { return principal(c, "dfs.namenode.kerberos.principal") }

// ResourceManager returns the principal of the ResourceManager.
func ResourceManager(c *conf.Conf) rpc.Principal {
	return principal(c, "yarn.resourcemanager.principal")
}

func principal(c *conf.Conf, key string) rpc.Principal {
	return rpc.Principal{Key: key, Name: c.Get(key), Pattern: c.Get(key + ".pattern")}
}

// Check returns an error if there is neither a token for the service nor a Kerberos user.
func (s Service) Check() error {
	if s.Token == nil {
		_, err := User()
		return err
	}
	if _, err := s.Token(); err != nil {
		if _, userErr := User(); userErr != nil {
			return both(err, userErr)
		}
	}
	return nil
}

// both chooses the error to return where there is no login: in a container that a token
// is missing, elsewhere that a ticket is.
func both(tokenErr, userErr error) error {
	if os.Getenv("CONTAINER_ID") != "" {
		return tokenErr
	}
	if os.Getenv(token.EnvFile) != "" {
		return fmt.Errorf("%w (and %w)", userErr, tokenErr)
	}
	return userErr
}

// Start implements rpc.Login.
func (s Service) Start(ctx context.Context, address string, offers []rpc.Auth) (rpc.Auth, rpc.Mechanism, error) {
	offered := func(method string) bool {
		return slices.ContainsFunc(offers, func(a rpc.Auth) bool { return a.Method == method })
	}
	var tokenErr error
	if s.Token != nil && offered("TOKEN") {
		var t token.Token
		if t, tokenErr = s.Token(); tokenErr == nil {
			return rpc.TokenLogin(t, s.QOP...).Start(ctx, address, offers)
		}
	}
	if !offered("KERBEROS") {
		if tokenErr != nil {
			return rpc.Auth{}, nil, tokenErr
		}
		var list []string
		for _, a := range offers {
			list = append(list, a.Method)
		}
		if len(list) == 0 {
			return rpc.Auth{}, nil, errors.New(address + " does not authenticate its clients, and the Hadoop configuration here demands it (hadoop.security.authentication): the configuration is another cluster's")
		}
		return rpc.Auth{}, nil, fmt.Errorf("%s takes only %s, not tokens or Kerberos", address, strings.Join(list, ", "))
	}
	u, err := User()
	if err != nil {
		if tokenErr != nil {
			err = both(tokenErr, err)
		}
		return rpc.Auth{}, nil, err
	}
	return rpc.KerberosLogin(u, s.Principal, s.QOP...).Start(ctx, address, offers)
}

var _ rpc.Login = Service{}
