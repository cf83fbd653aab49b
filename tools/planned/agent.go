package planned

import "trajgen/registry"

type computerUse struct {
	Action         string   `json:"action" doc:"What to do." enum:"capture,click,double_click,right_click,middle_click,drag,scroll,type,key,set_value,wait,list_apps,focus_app"`
	Mode           string   `json:"mode,omitempty" doc:"What a capture returns: a picture with numbered elements, a picture, or the accessibility tree." enum:"som,vision,ax"`
	App            string   `json:"app,omitempty" doc:"Application to act on."`
	MaxElements    int      `json:"max_elements,omitempty" doc:"Elements of a capture at most." default:"100" min:"1" max:"1000"`
	Element        int      `json:"element,omitempty" doc:"Number of an element of the last capture."`
	Coordinate     []int    `json:"coordinate,omitempty" doc:"Place on the screen, as x and y." minitems:"2" maxitems:"2"`
	Button         string   `json:"button,omitempty" doc:"Mouse button." enum:"left,right,middle"`
	Modifiers      []string `json:"modifiers,omitempty" doc:"Keys that are held down."`
	FromElement    int      `json:"from_element,omitempty" doc:"Where a drag begins."`
	ToElement      int      `json:"to_element,omitempty" doc:"Where a drag ends."`
	FromCoordinate []int    `json:"from_coordinate,omitempty" doc:"Where a drag begins, as x and y." minitems:"2" maxitems:"2"`
	ToCoordinate   []int    `json:"to_coordinate,omitempty" doc:"Where a drag ends, as x and y." minitems:"2" maxitems:"2"`
	Direction      string   `json:"direction,omitempty" doc:"Where to scroll." enum:"up,down,left,right"`
	Amount         int      `json:"amount,omitempty" doc:"How far to scroll."`
	Value          string   `json:"value,omitempty" doc:"Value to set."`
	Text           string   `json:"text,omitempty" doc:"Text to type."`
	Keys           string   `json:"keys,omitempty" doc:"Keys to press." example:"ctrl+s"`
	Seconds        float64  `json:"seconds,omitempty" doc:"How long to wait."`
	RaiseWindow    bool     `json:"raise_window,omitempty" doc:"Bring the application to the front."`
	CaptureAfter   bool     `json:"capture_after,omitempty" doc:"Return a capture of what came of it."`
}

type delegation struct {
	Goal       string    `json:"goal,omitempty" doc:"What the subagent should reach. Either this or tasks."`
	Context    string    `json:"context,omitempty" doc:"What it must know; it sees nothing of this conversation."`
	Toolsets   []string  `json:"toolsets,omitempty" doc:"Toolsets that it may use, of your own."`
	Tasks      []subtask `json:"tasks,omitempty" doc:"Several goals, worked on at the same time."`
	Role       string    `json:"role,omitempty" doc:"An orchestrator may delegate itself." enum:"leaf,orchestrator" default:"leaf"`
	Background bool      `json:"background,omitempty" doc:"Return at once."`
}

type subtask struct {
	Goal     string   `json:"goal" doc:"What this subagent should reach."`
	Context  string   `json:"context,omitempty" doc:"What it must know."`
	Toolsets []string `json:"toolsets,omitempty" doc:"Toolsets that it may use."`
	Role     string   `json:"role,omitempty" doc:"As above." enum:"leaf,orchestrator"`
}

type job struct {
	Action          string            `json:"action" doc:"What to do." enum:"create,list,update,pause,resume,remove,run"`
	JobID           string            `json:"job_id,omitempty" doc:"Which job."`
	Prompt          string            `json:"prompt,omitempty" doc:"What the job should do."`
	Schedule        string            `json:"schedule,omitempty" doc:"When: 30m, every 2h, five cron fields, or a time." example:"every 2h"`
	Name            string            `json:"name,omitempty" doc:"Name for people."`
	Repeat          int               `json:"repeat,omitempty" doc:"How often at most."`
	Deliver         string            `json:"deliver,omitempty" doc:"Where the result goes."`
	Skills          []string          `json:"skills,omitempty" doc:"Skills that the job reads first."`
	Model           map[string]string `json:"model,omitempty" doc:"Model and provider of the job."`
	Script          string            `json:"script,omitempty" doc:"Script to run first (.py or .sh)."`
	NoAgent         bool              `json:"no_agent,omitempty" doc:"Run the script alone." default:"false"`
	ContextFrom     []string          `json:"context_from,omitempty" doc:"Jobs whose last results the job gets."`
	EnabledToolsets []string          `json:"enabled_toolsets,omitempty" doc:"Toolsets of the job."`
	Workdir         string            `json:"workdir,omitempty" doc:"Where it runs."`
}

func agent() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			UserPrompt string `json:"user_prompt" doc:"The whole question, with all that is needed to answer it."`
		}]("moa", "mixture_of_agents", "Ask several models the same question and get one answer made of theirs. For hard questions.", "OPENROUTER_API_KEY"),
		entry[delegation]("delegation", "delegate_task", "Hand work to subagents, which have a conversation of their own and return a summary."),
		entry[job]("cronjob", "cronjob", "Schedule prompts and scripts to run later or again and again."),
		entry[computerUse]("computer_use", "computer_use", "See and control a desktop."),
		entry[struct {
			StartLine int `json:"start_line,omitempty" doc:"First line, from the end when negative."`
			Count     int `json:"count,omitempty" doc:"Lines at most." min:"1"`
		}]("terminal", "read_terminal", "Read what the user's own terminal shows."),
		entry[struct {
			Action    string `json:"action,omitempty" doc:"What to do." enum:"send,list,react,unreact" default:"send"`
			Target    string `json:"target,omitempty" doc:"Platform, with an id and a thread where it has them." example:"telegram:12345"`
			Message   string `json:"message,omitempty" doc:"The text."`
			Emoji     string `json:"emoji,omitempty" doc:"Reaction."`
			MessageID string `json:"message_id,omitempty" doc:"Message to react to."`
		}]("messaging", "send_message", "Send a message to a person or channel, list the channels, or react."),
	}
}

func skills() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			Category string `json:"category,omitempty" doc:"Only those of one category."`
		}]("skills", "skills_list", "List the skills: documents that say how to do something."),
		entry[struct {
			Name     string `json:"name" doc:"Name of the skill."`
			FilePath string `json:"file_path,omitempty" doc:"A file of the skill instead of its main document."`
		}]("skills", "skill_view", "Read a skill, or a file that belongs to it."),
		entry[struct {
			Action       string `json:"action" doc:"What to do." enum:"create,patch,edit,delete,write_file,remove_file"`
			Name         string `json:"name" doc:"Name of the skill." maxlen:"64"`
			Content      string `json:"content,omitempty" doc:"The whole document, for create and edit." maxlen:"100000"`
			OldString    string `json:"old_string,omitempty" doc:"Text to replace, for patch."`
			NewString    string `json:"new_string,omitempty" doc:"What takes its place."`
			ReplaceAll   bool   `json:"replace_all,omitempty" doc:"Replace it everywhere."`
			Category     string `json:"category,omitempty" doc:"Category of a new skill."`
			FilePath     string `json:"file_path,omitempty" doc:"File in references, templates, scripts or assets."`
			FileContent  string `json:"file_content,omitempty" doc:"What the file holds."`
			AbsorbedInto string `json:"absorbed_into,omitempty" doc:"Skill that has taken over what a deleted one said."`
		}]("skills", "skill_manage", "Write, change and delete skills."),
	}
}
