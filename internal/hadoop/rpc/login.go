package rpc

import (
	"context"
	"fmt"
	"strings"

	"holdfast/internal/hadoop/sasl"
	"holdfast/internal/hadoop/token"
)

type tokenLogin struct {
	get func() (token.Token, error)
	qop []string
}

func (l tokenLogin) Start(_ context.Context, address string, offers []Auth) (Auth, Mechanism, error) {
	for _, a := range offers {
		if a.Method != "TOKEN" || a.Mechanism != "DIGEST-MD5" {
			continue
		}
		t, err := l.get()
		if err != nil {
			return Auth{}, nil, fmt.Errorf("get a token for %s: %w", address, err)
		}
		user, password := sasl.TokenUser(t.Identifier, t.Password)
		return a, digest{sasl.NewDigest(sasl.Options{
			Username: user, Password: password, Protocol: a.Protocol, Server: a.ServerID,
			QOP: l.qop, Property: "hadoop.rpc.protection",
		})}, nil
	}
	return Auth{}, nil, fmt.Errorf("%s takes only %s, not tokens", address, methods(offers))
}

func methods(offers []Auth) string {
	var list []string
	for _, a := range offers {
		list = append(list, a.Method)
	}
	if len(list) == 0 {
		return "connections without authentication"
	}
	return strings.Join(list, ", ")
}

// digest adapts sasl.Digest to Mechanism.
type digest struct{ *sasl.Digest }

func (d digest) Finish(b []byte) (Session, error) {
	s, err := d.Digest.Finish(b)
	if s == nil || err != nil { // not a Session that holds a nil
		return nil, err
	}
	return s, nil
}
