package main

import "github.com/spf13/cobra"

func newMCP(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "mcp", Short: "Offer tools over the Model Context Protocol"}
	return group(cmd, newMCPServe(std))
}
