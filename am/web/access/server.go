package access

import (
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// maxConnections bounds the connections to a server that are open at a time.
const maxConnections = 256

// Limited returns a listener for a server of NewServer: further connections wait until one of
// those that are open has ended.
func Limited(l net.Listener) net.Listener { return netutil.LimitListener(l, maxConnections) }

// NewServer returns a server that bounds what a client can hold of this process: the time
// for a request and its response, and the size of headers. It serves a listener of Limited.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
}
