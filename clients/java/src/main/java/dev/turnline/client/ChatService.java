package dev.turnline.client;

import com.google.protobuf.Message;
import dev.turnline.v1.CancelRequest;
import dev.turnline.v1.CancelResponse;
import dev.turnline.v1.ChatServiceChatRequest;
import dev.turnline.v1.ChatServiceChatResponse;
import dev.turnline.v1.GetReplyRequest;
import dev.turnline.v1.GetReplyResponse;
import dev.turnline.v1.StreamChatRequest;
import dev.turnline.v1.StreamChatResponse;
import dev.turnline.v1.SubmitRequest;
import dev.turnline.v1.SubmitResponse;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.protobuf.ProtoUtils;

/** The methods of {@code turnline.v1.ChatService}; its generator is a program for few platforms. */
final class ChatService {
  static final MethodDescriptor<ChatServiceChatRequest, ChatServiceChatResponse> CHAT =
      method(
          "Chat",
          MethodType.UNARY,
          ChatServiceChatRequest.getDefaultInstance(),
          ChatServiceChatResponse.getDefaultInstance());
  static final MethodDescriptor<SubmitRequest, SubmitResponse> SUBMIT =
      method(
          "Submit",
          MethodType.UNARY,
          SubmitRequest.getDefaultInstance(),
          SubmitResponse.getDefaultInstance());
  static final MethodDescriptor<GetReplyRequest, GetReplyResponse> GET_REPLY =
      method(
          "GetReply",
          MethodType.UNARY,
          GetReplyRequest.getDefaultInstance(),
          GetReplyResponse.getDefaultInstance());
  static final MethodDescriptor<StreamChatRequest, StreamChatResponse> STREAM_CHAT =
      method(
          "StreamChat",
          MethodType.SERVER_STREAMING,
          StreamChatRequest.getDefaultInstance(),
          StreamChatResponse.getDefaultInstance());
  static final MethodDescriptor<CancelRequest, CancelResponse> CANCEL =
      method(
          "Cancel",
          MethodType.UNARY,
          CancelRequest.getDefaultInstance(),
          CancelResponse.getDefaultInstance());

  private ChatService() {}

  private static <Q extends Message, A extends Message> MethodDescriptor<Q, A> method(
      String name, MethodType type, Q request, A answer) {
    return MethodDescriptor.<Q, A>newBuilder()
        .setType(type)
        .setFullMethodName(MethodDescriptor.generateFullMethodName("turnline.v1.ChatService", name))
        .setRequestMarshaller(ProtoUtils.marshaller(request))
        .setResponseMarshaller(ProtoUtils.marshaller(answer))
        .build();
  }
}
