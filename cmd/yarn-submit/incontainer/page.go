package incontainer

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sirupsen/logrus"

	"holdfast/am/server"
	"holdfast/am/web"
	"holdfast/am/web/access"
	"holdfast/internal/hadoop/acl"
	"holdfast/internal/hadoop/conf"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// servePage serves the pages of a job on a port of its own, and returns its server and URL. On
// a cluster it answers YARN's web proxy; on this machine, whoever knows the URL.
func servePage(host, id string, s secrets, site web.Site) (*http.Server, string, error) {
	listener, err := server.Listen(host)
	if err != nil {
		return nil, "", fmt.Errorf("serving the tracking page: %w", err)
	}
	l := access.Limited(listener)
	address := "://" + listener.Address()
	log := logrus.WithField("app", id)
	var handler http.Handler
	if site.Spec.Local {
		key := rand.Text()
		site.Changes = web.NewChanges(func(*http.Request) (string, error) { return site.Spec.User, nil }, false, log)
		handler, address = access.Keyed(key, web.Handler(site)), "http"+address+"/"+key+"/"
	} else {
		filter, keys, err := pageFilter(id, site.Spec, s)
		if err != nil {
			l.Close()
			return nil, "", err
		}
		may, err := modifiers(site.Spec, s.conf, filter.Certificate != nil)
		if err != nil {
			l.Close()
			return nil, "", err
		}
		site.Changes = web.NewChanges(may, true, log)
		handler, address = filter.Wrap(web.Handler(site)), "http"+address
		if keys != nil {
			l, address = tls.NewListener(l, keys.Server()), "https"+address[len("http"):]
		}
	}
	page := access.NewServer(handler)
	go func() {
		if err := page.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logrus.WithError(err).Error("the tracking page is not served any longer")
		}
	}()
	return page, address, nil
}

// historyPage returns the URL of the page that a job has after its end (--history-url); "" if
// it has none.
func historyPage(spec *proto.JobSpec, id string) (string, error) {
	if spec.HistoryUrl == "" {
		return "", nil
	}
	page, err := url.JoinPath(spec.HistoryUrl, id)
	if err != nil {
		return "", fmt.Errorf("make the address of the page after the job's end of --history-url %s: %w", spec.HistoryUrl, err)
	}
	return page, nil
}

// pageFilter returns the page's filter on a cluster, and the keys for TLS where YARN has
// given some. A stand-alone proxy lacks the key that belongs to them (WebAppProxyServer), so
// they are not used with one.
func pageFilter(id string, spec *proto.JobSpec, s secrets) (*access.ProxyFilter, *hadoop.PageKeys, error) {
	proxies, err := s.conf.WebProxies()
	if err != nil {
		return nil, nil, err
	}
	viewers, err := viewers(spec, s.conf)
	if err != nil {
		return nil, nil, err
	}
	d := &access.ProxyFilter{Proxies: proxies.Hosts, Allowed: viewers, Log: logrus.WithField("app", id)}
	for _, u := range proxies.URLs {
		d.URLs = append(d.URLs, u+"/proxy/"+id)
	}
	if proxies.Alone {
		return d, nil, nil
	}
	keys, err := hadoop.ReadPageKeys(s.Credentials)
	if keys != nil {
		d.Certificate = keys.Proxy
	}
	return d, keys, err
}

// viewers tells who may see the job: everybody on a cluster without ACLs
// (yarn.acl.enable), if the job has none of its own; else its user, those whom
// its ACL names, and YARN's administrators. That yarn.admin.acl lets everybody
// be one where nobody has set it is not taken for an administrator's wish.
func viewers(spec *proto.JobSpec, c *conf.Conf) (func(user string) bool, error) {
	if !c.Bool("yarn.acl.enable", false) && spec.ViewAcl == "" {
		return func(string) bool { return true }, nil
	}
	view, err := acl.Parse(spec.ViewAcl)
	if err != nil {
		return nil, fmt.Errorf("the job's view ACL: %w", err)
	}
	admins, err := acl.Configured(c, "yarn.admin.acl")
	if err != nil {
		logrus.WithError(err).Warn("yarn.admin.acl makes nobody an administrator")
	}
	groups := acl.NewGroups(c)
	return func(user string) bool {
		if user == "" {
			return view.All
		}
		return user == spec.User || view.Allows(user, groups.Of) || admins.Allows(user, groups.Of)
	}, nil
}

// modifiers tells who may change the job's checkpoints on its page, and why others may not: the
// job's user, those whom --modify-acl names, and YARN's administrators on a cluster with ACLs.
// That without ACLs YARN lets everybody end a job does not let everybody remove its checkpoints,
// nor does yarn.admin.acl where nobody has set it. On a cluster with Kerberos the proxy must have
// proved that it is one: whoever has an account on its host can otherwise claim to be any user,
// and HDFS asks for more than that.
func modifiers(spec *proto.JobSpec, c *conf.Conf, proven bool) (func(r *http.Request) (string, error), error) {
	modify, err := acl.Parse(spec.ModifyAcl)
	if err != nil {
		return nil, fmt.Errorf("the job's modify ACL: %w", err)
	}
	admins := acl.List{}
	if c.Bool("yarn.acl.enable", false) {
		if admins, err = acl.Configured(c, "yarn.admin.acl"); err != nil {
			logrus.WithError(err).Warn("yarn.admin.acl makes nobody an administrator")
		}
	}
	groups := acl.NewGroups(c)
	return func(r *http.Request) (string, error) {
		user := access.User(r)
		switch {
		case !proven && c.Secure():
			return user, errors.New("YARN's proxy does not prove that it is one (yarn.resourcemanager.application-https.policy), so the page cannot know who asks; type the command")
		case user == "":
			return "", errors.New("the cluster's web pages do not ask who you are (hadoop.http.authentication.type); type the command")
		case user == spec.User || modify.Allows(user, groups.Of) || admins.Allows(user, groups.Of):
			return user, nil
		}
		return user, fmt.Errorf("the user %s may not modify this job: its user, %s, can name others with --modify-acl when it is started", user, spec.User)
	}, nil
}
