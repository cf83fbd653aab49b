package planned

import "trajgen/registry"

const kanbanToolset = "kanban"

type taskID struct {
	TaskID string `json:"task_id,omitempty" doc:"Which task (default: your own)."`
}

func kanban() []registry.Tool {
	return []registry.Tool{
		entry[taskID](kanbanToolset, "kanban_show", "Show a task of the board with its comments."),
		entry[struct {
			Assignee string `json:"assignee,omitempty" doc:"Only tasks of this worker."`
			Status   string `json:"status,omitempty" doc:"Only tasks in this state."`
			Tenant   string `json:"tenant,omitempty" doc:"Only tasks of this tenant."`
			Limit    int    `json:"limit,omitempty" doc:"Tasks at most." min:"1"`
		}](kanbanToolset, "kanban_list", "List the tasks of the board."),
		entry[struct {
			taskID
			Summary   string         `json:"summary,omitempty" doc:"What was done."`
			Metadata  map[string]any `json:"metadata,omitempty" doc:"Facts for whoever goes on."`
			Result    string         `json:"result,omitempty" doc:"What came of it."`
			Artifacts []string       `json:"artifacts,omitempty" doc:"Files that were made."`
		}](kanbanToolset, "kanban_complete", "Mark a task as done."),
		entry[struct {
			taskID
			Reason string `json:"reason" doc:"What is missing."`
		}](kanbanToolset, "kanban_block", "Say that a task cannot go on, and why."),
		entry[struct {
			taskID
			Note string `json:"note,omitempty" doc:"How far it is."`
		}](kanbanToolset, "kanban_heartbeat", "Say that a task is being worked on."),
		entry[struct {
			TaskID string `json:"task_id" doc:"Which task."`
			Body   string `json:"body" doc:"The comment."`
		}](kanbanToolset, "kanban_comment", "Comment on a task."),
		entry[struct {
			Title    string   `json:"title" doc:"What is to be done."`
			Assignee string   `json:"assignee" doc:"Who does it."`
			Body     string   `json:"body,omitempty" doc:"What must be known."`
			Parents  []string `json:"parents,omitempty" doc:"Tasks that must be done first."`
			Tenant   string   `json:"tenant,omitempty" doc:"Tenant of the task."`
			Priority int      `json:"priority,omitempty" doc:"The higher, the sooner."`
		}](kanbanToolset, "kanban_create", "Put a task on the board."),
		entry[struct {
			ParentID string `json:"parent_id" doc:"Task that must be done first."`
			ChildID  string `json:"child_id" doc:"Task that waits for it."`
		}](kanbanToolset, "kanban_link", "Make one task wait for another."),
		entry[struct {
			TaskID string `json:"task_id" doc:"Which task."`
		}](kanbanToolset, "kanban_unblock", "Let a blocked task go on."),
	}
}
