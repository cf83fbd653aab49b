package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/tools/web/sites"
)

func newSites(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sites", Short: "List and serve the web sites that browser tasks are about",
		Long: `Web sites come along for browser tasks: a shop, a forum, a wiki and others. A task that names them (sites: [shop]) has
them at http://shop.test/ and so on, in its browser and its web tools, whatever its network. Each episode has its own, in the
same state at the beginning; shop:7 is the shop with the seed 7, which has other goods. What a site holds at the end judges
the episode:

  {"prompt": "...", "sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "len(orders) == 1"}}}`,
	}
	return group(cmd, newSitesList(std), newSitesServe(std))
}

func newSitesList(std stdio) *cobra.Command {
	all := func(*cobra.Command, []string) ([]sites.Site, error) { return sites.All(), nil }
	cmd := &cobra.Command{Use: "list", Short: "List the sites", Args: cobra.NoArgs}
	return showing(std, cmd, all, func(w io.Writer, all []sites.Site) error {
		for _, site := range all {
			fmt.Fprintf(w, "%-8s  %s (%s)\n", site.Name, site.About, strings.Join(site.Hosts, ", "))
		}
		return nil
	})
}

func newSitesServe(std stdio) *cobra.Command {
	var addr string
	var states bool
	cmd := &cobra.Command{
		Use: "serve [NAME...]", Short: "Serve sites to your own browser",
		Long: `Serves sites, all of them without a name, and prints their addresses. A browser finds the names below localhost by
itself. The sites keep what visitors do until the command ends, with Ctrl-C. With --state, http://localhost:PORT/state/NAME is what a site
holds, which is what the expectations of tasks are about.`,
		Example: `  trajgen sites serve
  trajgen sites serve shop:7 forum --addr 127.0.0.1:9000 --state`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				for _, site := range sites.All() {
					names = append(names, site.Name)
				}
			}
			set, err := sites.Open(names)
			if err != nil {
				return usage(err)
			}
			return serve(cmd.Context(), addr, set.Handler(states), nil, func(at net.Addr) {
				_, port, _ := net.SplitHostPort(at.String())
				for _, name := range set.Names() {
					fmt.Fprintf(std.out, "http://%s.localhost:%s/\n", name, port)
				}
				if states {
					fmt.Fprintf(std.out, "states: http://localhost:%s/state/NAME\n", port)
				}
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	cmd.Flags().BoolVar(&states, "state", false, "serve the states, too")
	return cmd
}

// serve serves at an address, of which it tells, until the user or the context ends it. With end, that is called to end streams.
func serve(ctx context.Context, addr string, handler http.Handler, end func(), tell func(net.Addr)) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return usage(fmt.Errorf("listen: %w", err))
	}
	tell(listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second, ReadTimeout: 5 * time.Minute}
	if end != nil {
		server.RegisterOnShutdown(end)
	}
	ctx, drain, stop := interruptible(ctx, io.Discard, nil)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-drain:
	case <-ctx.Done():
	}
	quick, cancel := context.WithTimeout(ctx, 10*time.Second) // a second signal cancels it
	defer cancel()
	if server.Shutdown(quick) != nil { // requests are left
		err = server.Close()
	}
	<-ended
	return err
}
