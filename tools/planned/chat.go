package planned

import "trajgen/registry"

const (
	discordToken = "DISCORD_BOT_TOKEN"
	driveToolset = "feishu_drive"
	// The tools of Yuanbao stand in the preset that they are for.
	yuanbaoToolset = "hermes-yuanbao"
)

type driveFile struct {
	FileToken string `json:"file_token" doc:"Token of the file."`
	FileType  string `json:"file_type,omitempty" doc:"Kind of the file." default:"docx"`
}

type pageOf struct {
	PageSize  int    `json:"page_size,omitempty" doc:"Entries of a page." min:"1" max:"100"`
	PageToken string `json:"page_token,omitempty" doc:"The next page, as the last one names it."`
}

func chat() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			Action    string `json:"action" doc:"What to do." enum:"fetch_messages,search_members,create_thread"`
			GuildID   string `json:"guild_id,omitempty" doc:"Server, for search_members."`
			ChannelID string `json:"channel_id,omitempty" doc:"Channel, for fetch_messages and create_thread."`
			MessageID string `json:"message_id,omitempty" doc:"Message that a thread begins with."`
			Query     string `json:"query,omitempty" doc:"Part of a member's name."`
			Name      string `json:"name,omitempty" doc:"Name of the thread."`
			Before    string `json:"before,omitempty" doc:"Only messages before this one."`
			After     string `json:"after,omitempty" doc:"Only messages after this one."`
			Limit     int    `json:"limit,omitempty" doc:"Entries at most." min:"1" max:"100"`
		}]("discord", "discord", "Read and take part in a Discord server.", discordToken),
		entry[struct {
			Action    string `json:"action" doc:"What to do." enum:"list_guilds,list_channels,list_roles,list_pins,server_info,channel_info,member_info,pin_message,unpin_message,delete_message,add_role,remove_role"`
			GuildID   string `json:"guild_id,omitempty" doc:"Server."`
			ChannelID string `json:"channel_id,omitempty" doc:"Channel."`
			MessageID string `json:"message_id,omitempty" doc:"Message."`
			UserID    string `json:"user_id,omitempty" doc:"Member."`
			RoleID    string `json:"role_id,omitempty" doc:"Role."`
		}]("discord_admin", "discord_admin", "Look after a Discord server.", discordToken),

		entry[struct {
			DocToken string `json:"doc_token" doc:"Token of the document."`
		}]("feishu_doc", "feishu_doc_read", "Read a Feishu document as text."),
		entry[struct {
			driveFile
			pageOf
		}](driveToolset, "feishu_drive_list_comments", "List the comments on a Feishu file."),
		entry[struct {
			driveFile
			CommentID string `json:"comment_id" doc:"Which comment."`
			pageOf
		}](driveToolset, "feishu_drive_list_comment_replies", "List the replies to a comment."),
		entry[struct {
			driveFile
			CommentID string `json:"comment_id" doc:"Which comment."`
			Content   string `json:"content" doc:"The reply."`
		}](driveToolset, "feishu_drive_reply_comment", "Reply to a comment."),
		entry[struct {
			driveFile
			Content string `json:"content" doc:"The comment."`
		}](driveToolset, "feishu_drive_add_comment", "Comment on a Feishu file."),

		entry[struct {
			GroupCode string `json:"group_code" doc:"Which group."`
		}](yuanbaoToolset, "yb_query_group_info", "What is known about a Yuanbao group."),
		entry[struct {
			GroupCode string `json:"group_code" doc:"Which group."`
			Name      string `json:"name,omitempty" doc:"Part of a member's name."`
		}](yuanbaoToolset, "yb_query_group_members", "List or find the members of a Yuanbao group."),
		entry[struct {
			GroupCode string `json:"group_code" doc:"Group that the person is in."`
			Name      string `json:"name" doc:"Whom to write to."`
			Message   string `json:"message" doc:"The text."`
		}](yuanbaoToolset, "yb_send_dm", "Write to a member of a group."),
		entry[struct {
			Query string `json:"query,omitempty" doc:"What the sticker should say."`
			Limit int    `json:"limit,omitempty" doc:"Stickers at most." min:"1"`
		}](yuanbaoToolset, "yb_search_sticker", "Find stickers."),
		entry[struct {
			Sticker string `json:"sticker" doc:"Name or id of the sticker."`
			ReplyTo string `json:"reply_to,omitempty" doc:"Message that it answers."`
		}](yuanbaoToolset, "yb_send_sticker", "Send a sticker."),
	}
}
