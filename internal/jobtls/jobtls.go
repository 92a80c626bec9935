// Package jobtls makes the keys of one job and the TLS configurations that use
// them. Each job has a certificate authority of its own, made at submission,
// whose key is forgotten as soon as it has signed one certificate for each
// Party. Every connection is mutually authenticated TLS 1.3; the common name of
// a certificate is the party that holds it.
//
// All agents hold the same certificate: a master with thousands of connections keeps
// one copy of it. Agents are distinguished by their Pass, a secret that the
// master gives to the agent of one container when it starts it. A pass follows from
// the master's key, so that another application master of the job knows it too, and
// nobody else can make one.
package jobtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Party is a participant in the communication of a job.
type Party string

// The parties. A master serves; agents and clients call it.
const (
	Master Party = "master"
	Agent  Party = "agent"
	Client Party = "client"
)

// Keys are the certificate and key of one party, in PEM. They are secret.
type Keys struct {
	CA   []byte `json:"ca"`
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
	// Pass is an agent's own, and only in the keys that Admit made.
	Pass []byte `json:"pass,omitempty"`
}

// Admit returns the keys of the agent in one container, made of those of all agents. k are the
// master's.
func (k Keys) Admit(agent Keys, container string) (Keys, error) {
	pass, err := k.pass(container)
	agent.Pass = pass
	return agent, err
}

// Admits reports whether a pass is that of a container. k are the master's keys.
func (k Keys) Admits(container string, pass []byte) bool {
	want, err := k.pass(container)
	return err == nil && subtle.ConstantTimeCompare(want, pass) == 1
}

func (k Keys) pass(container string) ([]byte, error) {
	pass, err := hkdf.Key(sha256.New, k.Key, nil, "holdfast agent in "+container, 32)
	if err != nil {
		return nil, fmt.Errorf("making the pass of an agent: %w", err)
	}
	return pass, nil
}

// Set holds the keys of all the parties of a job.
type Set struct{ Master, Agent, Client Keys }

// validity exceeds the duration of any job; a job's keys are useless after its end.
const validity = 10 * 365 * 24 * time.Hour

// New makes the keys of a job. job is its name for humans only.
func New(job string) (Set, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Set{}, fmt.Errorf("making the job's keys: %w", err)
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "holdfast " + job},
		NotBefore:             now.Add(-time.Hour), // clocks of a cluster differ
		NotAfter:              now.Add(validity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return Set{}, fmt.Errorf("making the job's certificate authority: %w", err)
	}
	var s Set
	for i, p := range []struct {
		party Party
		keys  *Keys
	}{{Master, &s.Master}, {Agent, &s.Agent}, {Client, &s.Client}} {
		k, err := issue(ca, caKey, p.party, int64(i+2))
		if err != nil {
			return Set{}, fmt.Errorf("making the %s's certificate: %w", p.party, err)
		}
		k.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
		*p.keys = k
	}
	return s, nil
}

func issue(ca *x509.Certificate, caKey *ecdsa.PrivateKey, p Party, serial int64) (Keys, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Keys{}, err
	}
	usage := x509.ExtKeyUsageClientAuth
	if p == Master {
		usage = x509.ExtKeyUsageServerAuth
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: string(p)},
		DNSNames:     []string{string(p)},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
	}, ca, &key.PublicKey, caKey)
	if err != nil {
		return Keys{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Keys{}, err
	}
	return Keys{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// Marshal encodes keys for credentials and files.
func (k Keys) Marshal() []byte {
	b, err := json.Marshal(k)
	if err != nil {
		panic(err) // byte slices always marshal
	}
	return b
}

// Unmarshal reads what Marshal wrote.
func Unmarshal(b []byte) (Keys, error) {
	var k Keys
	if err := json.Unmarshal(b, &k); err != nil {
		return Keys{}, fmt.Errorf("reading the job's keys: %w", err)
	}
	if len(k.CA) == 0 || len(k.Cert) == 0 || len(k.Key) == 0 {
		return Keys{}, errors.New("reading the job's keys: the authority, the certificate or the key is missing")
	}
	return k, nil
}

func (k Keys) load() (tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.X509KeyPair(k.Cert, k.Key)
	if err != nil {
		return cert, nil, fmt.Errorf("loading the job's keys: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(k.CA) {
		return cert, nil, errors.New("loading the job's keys: the authority's certificate does not parse")
	}
	return cert, pool, nil
}

// Server returns the configuration of the master.
func (k Keys) Server() (*tls.Config, error) {
	cert, pool, err := k.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		// A client connects once, and would not use a session ticket.
		SessionTicketsDisabled: true,
	}, nil
}

// Dialer returns the configuration of a client of the master, independent of the
// address it has.
func (k Keys) Dialer() (*tls.Config, error) {
	cert, pool, err := k.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		RootCAs:      pool,
		ServerName:   string(Master),
	}, nil
}

// Peer returns which party is at the other end of an established connection.
func Peer(s tls.ConnectionState) (Party, error) {
	if len(s.VerifiedChains) == 0 || len(s.VerifiedChains[0]) == 0 {
		return "", errors.New("the caller showed no certificate of this job")
	}
	return Party(s.VerifiedChains[0][0].Subject.CommonName), nil
}
